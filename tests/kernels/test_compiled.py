"""The compiled form gives the bits of the plain form: every function, order and format, odd shapes, awkward numbers."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mutkv.kernels import compiled, plain
from mutkv.kernels.exact import ExactKernel

from .bits import awkward, ordinary, same_bits

ORDERS = ("sequential", "pairwise")
WIDE = (torch.float64, torch.float32)
FORMATS = [(s, a) for s in ("float64", "float32", "bfloat16") for a in ("float64", "float32")]

seeds = st.integers(0, 2**32)
small, medium = st.integers(1, 3), st.integers(1, 19)
special = st.sampled_from([0.0, 0.1, 0.6])


def agree(name, order, shape, *operands):
    """Whether both forms of a function give the same bits on these operands."""
    out = torch.empty(shape, dtype=operands[0].dtype)
    arrays = [operand.numpy() if isinstance(operand, torch.Tensor) else operand for operand in operands]
    getattr(compiled, name)(*arrays, order == "pairwise", out.numpy())
    return same_bits(out, getattr(plain, name)(*operands, order))


@given(seeds, small, medium, medium, medium, special)
def test_products_agree(seed, replicas, rows, inner, columns, share):
    for dtype in WIDE:
        left = awkward(seed, (replicas, rows, inner), dtype, share)
        right = awkward(seed + 1, (replicas, inner, columns), dtype, share)
        for order in ORDERS:
            assert agree("product", order, (replicas, rows, columns), left, right)


@given(seeds, small, medium, medium, special)
def test_mean_squares_agree(seed, replicas, rows, width, share):
    for dtype in WIDE:
        values = awkward(seed, (replicas, rows, width), dtype, share)
        assert all(agree("mean_square", order, (replicas, rows), values) for order in ORDERS)


@given(seeds, small, medium, medium, special)
def test_scalings_agree(seed, replicas, rows, width, share):
    for dtype in WIDE:
        values, gain = awkward(seed, (replicas, rows, width), dtype, share), awkward(seed + 1, (replicas, width), dtype)
        root, out = awkward(seed + 2, (replicas, rows), dtype, share), torch.empty_like(values)
        compiled.scale(values.numpy(), root.numpy(), gain.numpy(), out.numpy())
        assert same_bits(out, plain.scale(values, root, gain))


@given(seeds, small, small, st.integers(1, 6), small, st.integers(1, 9), st.integers(0, 20), st.sampled_from([0, 0.1]))
def test_scores_and_mixes_agree(seed, replicas, batch, length, heads, width, past, share):
    total = past + length
    allowed = torch.arange(total) <= (torch.arange(length) + past)[:, None]
    for dtype in WIDE:
        query = awkward(seed, (replicas, batch, length, heads, width), dtype, share)
        keys, values = (awkward(seed + i, (replicas, batch, total, heads, width), dtype, share) for i in (1, 2))
        shape = (replicas, batch, heads, length, total)
        weights = ordinary(seed + 3, shape, dtype).exp().masked_fill(~allowed, 0.0)
        for order in ORDERS:
            if not share:  # an overflow makes NaN, which the forms spread differently: see the attention test
                for bias in (torch.empty(0, 0, 0, dtype=dtype), ordinary(seed + 4, (heads, length, total), dtype)):
                    assert agree("shifted_scores", order, shape, query, keys, allowed, bias, math.sqrt(width))
            assert agree("mix", order, query.shape, weights, values)


@given(seeds, small, small, medium, small, st.integers(1, 6), special)
def test_rotations_agree(seed, replicas, batch, length, heads, pairs, share):
    for dtype in WIDE:
        values = awkward(seed, (replicas, batch, length, heads, 2 * pairs), dtype, share)
        angles = ordinary(seed + 1, (length, pairs))
        cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
        out = torch.empty_like(values)
        compiled.rotate(values.numpy(), cos.numpy(), sin.numpy(), out.numpy())
        assert same_bits(out, plain.rotate(values, cos, sin))


@settings(max_examples=60)
@given(seeds, st.sampled_from(FORMATS), st.sampled_from(ORDERS), small, small, st.integers(1, 5), special)
def test_every_operation_of_the_exact_kernel_agrees(seed, formats, order, replicas, batch, length, share):
    heads, width, total = 3, 6, length + 4
    fast, slow = (ExactKernel(*formats, order, use_compiled=use) for use in (True, False))
    draw = lambda i, *shape: awkward(seed + i, shape, slow.storage, share)  # noqa: E731
    hidden, gain = draw(0, replicas, batch, length, 18), draw(1, replicas, 18)
    query, keys, values = (draw(2 + i, replicas, batch, n, heads, width) for i, n in enumerate((length, total, total)))
    allowed = torch.arange(total) <= (torch.arange(length) + 4)[:, None]
    angles = ordinary(seed, (length, 3))
    calls = {
        "product": (hidden, draw(5, replicas, 18, 7)),
        "norm": (hidden, gain),
        "attention": (query, keys, values, allowed, draw(7, query.shape[3], query.shape[2], keys.shape[2])),
        "rotate": (query, angles.cos(), angles.sin()),
        "silu": (hidden,),
        "add": (hidden, draw(6, replicas, batch, length, 18)),
    }
    for name, operands in calls.items():
        left, right = getattr(fast, name)(*operands), getattr(slow, name)(*operands)
        assert left.dtype == slow.storage
        assert same_bits(left, right), name


@pytest.mark.parametrize("order", ORDERS)
def test_operands_that_are_not_contiguous_give_the_same_bits(order):
    kernel = ExactKernel("float64", "float64", order)
    left, right = ordinary(0, (2, 9, 5, 3)).transpose(1, 3), ordinary(1, (2, 7, 9)).transpose(1, 2)
    assert same_bits(kernel.product(left, right), kernel.product(left.contiguous(), right.contiguous()))
    keys = ordinary(2, (2, 1, 8, 11, 2)).permute(0, 1, 3, 4, 2)
    query, allowed = ordinary(3, (2, 1, 8, 1, 2)).permute(0, 1, 3, 4, 2), torch.ones(1, 11, dtype=torch.bool)
    whole = kernel.attention(query.contiguous(), keys.contiguous(), keys.contiguous(), allowed)
    assert same_bits(kernel.attention(query, keys, keys, allowed), whole)


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("order", ORDERS)
def test_nan_and_infinity_reach_the_same_entries_in_both_forms(poison, order):
    fast, slow = (ExactKernel("float64", "float64", order, use_compiled=use) for use in (True, False))
    for place in range(6):
        query, keys, values = (ordinary(i, (1, 1, n, 2, 3)) for i, n in enumerate((2, 6, 6)))
        allowed = torch.arange(6) <= (torch.arange(2) + 4)[:, None]
        for operand in (query, keys, values):
            spoilt = operand.clone()
            spoilt[0, 0, place % operand.shape[2], 1, 1] = poison
            operands = [spoilt if part is operand else part for part in (query, keys, values)]
            assert same_bits(fast.attention(*operands, allowed), slow.attention(*operands, allowed))


def test_bfloat16_accumulators_and_gradients_take_the_plain_form(monkeypatch):
    monkeypatch.setattr(compiled, "product", None)  # calling it would raise
    rows, matrix = ordinary(0, (1, 1, 2, 3)), ordinary(1, (1, 3, 4))
    narrow = ExactKernel("bfloat16", "bfloat16", "sequential").product(rows.bfloat16(), matrix.bfloat16())
    assert narrow.dtype == torch.bfloat16
    product = ExactKernel("float64", "float64", "sequential").product(rows.requires_grad_(), matrix)
    product.sum().backward()
    np.testing.assert_allclose(rows.grad[0, 0, 0], matrix[0].sum(dim=1))
