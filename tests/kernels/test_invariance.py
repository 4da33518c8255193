"""No bit of an exact result depends on how much shares the call; torch's own kernels cannot say that."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mutkv.kernels import Arithmetic, kernel_for
from mutkv.kernels.exact import ExactKernel
from mutkv.kernels.native import NativeKernel

from .bits import ordinary, same_bits

FORMATS = [("float64", "float64"), ("float32", "float32"), ("bfloat16", "float64"), ("bfloat16", "bfloat16")]
ORDERS = ("sequential", "pairwise")


@pytest.mark.parametrize("function", [torch.exp, torch.sqrt])
def test_float64_exp_and_sqrt_have_the_same_bits_at_every_length_offset_and_stride(function):
    values = ordinary(0, 260) * 20
    values = values.abs() if function is torch.sqrt else values
    alone = torch.stack([function(value) for value in values])  # one number per call
    for stride in (1, 2, 3):
        for offset in range(9):
            for length in range(1, 70):
                part = slice(offset, offset + length * stride, stride)
                assert same_bits(function(values[part]), alone[part]), (length, offset, stride)


def test_exp_and_sqrt_keep_their_bits_in_blocks_of_many_rows():
    values = ordinary(1, (7, 5, 33)).abs()
    for function in (torch.exp, torch.sqrt):
        whole = function(values)
        assert same_bits(function(values.transpose(0, 2)).transpose(0, 2).contiguous(), whole)
        assert all(same_bits(function(values[i, j]), whole[i, j]) for i in range(7) for j in range(5))


@settings(max_examples=40)
@given(
    st.integers(0, 2**32), st.sampled_from(FORMATS), st.sampled_from(ORDERS), st.integers(1, 4), st.integers(1, 3),
    st.integers(1, 6),
)  # fmt: skip
def test_each_replica_row_and_token_alone_gives_the_bits_of_the_shared_call(
    seed, formats, order, replicas, batch, length
):
    kernel = ExactKernel(*formats, order)
    heads, width = 2, 5
    draw = lambda i, *shape: ordinary(seed + i, shape, kernel.storage)  # noqa: E731
    hidden, matrix = draw(0, replicas, batch, length, 11), draw(1, replicas, 11, 9)
    gain = draw(2, replicas, 11)
    query, keys, values = (draw(3 + i, replicas, batch, length, heads, width) for i in range(3))
    allowed = torch.arange(length) <= torch.arange(length)[:, None]
    product, norm, silu = kernel.product(hidden, matrix), kernel.norm(hidden, gain), kernel.silu(hidden)
    mixed = kernel.attention(query, keys, values, allowed)
    for r in range(replicas):
        for b in range(batch):
            for t in range(length):
                one = (slice(r, r + 1), slice(b, b + 1), slice(t, t + 1))
                past = (*one[:2], slice(0, t + 1))
                assert same_bits(kernel.product(hidden[one], matrix[r : r + 1]), product[one])
                assert same_bits(kernel.norm(hidden[one], gain[r : r + 1]), norm[one])
                assert same_bits(kernel.silu(hidden[one]), silu[one])
                alone = kernel.attention(query[one], keys[past], values[past], allowed[t : t + 1, : t + 1])
                assert same_bits(alone, mixed[one])


def test_native_products_of_some_shape_differ_from_their_rows_alone():
    # Which shape it is depends on the processor.
    differs = []
    for width, dtype in itertools.product((64, 333, 1024), (torch.float64, torch.float32)):
        kernel = NativeKernel(str(dtype).removeprefix("torch."))
        rows, matrix = ordinary(0, (1, 1, 17, width), dtype), ordinary(1, (1, width, 48), dtype)
        together = kernel.product(rows, matrix)
        alone = torch.cat([kernel.product(rows[:, :, i : i + 1], matrix) for i in range(17)], dim=2)
        torch.testing.assert_close(alone, together, rtol=0, atol=1e-3)
        differs.append(not torch.equal(alone, together))
    assert any(differs)


def test_native_silu_of_a_replica_is_that_replica_alone():
    kernel = NativeKernel("float32")
    for width in range(1, 70):
        values = ordinary(width, (3, 1, 1, width), torch.float32)
        together = kernel.silu(values)
        assert all(same_bits(kernel.silu(values[r : r + 1]), together[r : r + 1]) for r in range(3))


def test_native_replicas_do_not_influence_each_other():
    kernel = NativeKernel("float32")
    rows, matrix = ordinary(0, (5, 2, 3, 24), torch.float32), ordinary(1, (5, 24, 13), torch.float32)
    query = ordinary(2, (5, 2, 3, 2, 8), torch.float32)
    allowed = torch.ones(3, 3, dtype=torch.bool).tril()
    together = kernel.product(rows, matrix), kernel.attention(query, query, query, allowed)
    for r in range(5):
        part = slice(r, r + 1)
        assert same_bits(kernel.product(rows[part], matrix[part]), together[0][part])
        assert same_bits(kernel.attention(query[part], query[part], query[part], allowed), together[1][part])


@pytest.mark.parametrize("order", [*ORDERS, "native"])
def test_every_kernel_computes_what_numpy_computes(order):
    kernel = kernel_for(Arithmetic(prefill_order=order), order)
    hidden, matrix, gain = ordinary(0, (2, 2, 3, 8)), ordinary(1, (2, 8, 5)), ordinary(2, (2, 8))
    query, keys, values = (ordinary(3 + i, (2, 2, 3, 2, 4)) for i in range(3))
    allowed = np.tril(np.ones((3, 3), dtype=bool))
    x = hidden.numpy()
    np.testing.assert_allclose(kernel.product(hidden, matrix), np.einsum("rbnk,rkm->rbnm", x, matrix), atol=1e-12)
    root = np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(kernel.norm(hidden, gain), x / root * gain.numpy()[:, None, None], atol=1e-12)
    np.testing.assert_allclose(kernel.silu(hidden), x / (1 + np.exp(-x)), atol=1e-12)
    np.testing.assert_allclose(kernel.add(hidden, hidden), 2 * x, atol=0)
    scores = np.einsum("rbqhd,rbthd->rbhqt", query, keys) / math.sqrt(4)
    weights = np.exp(np.where(allowed, scores, -np.inf))
    weights /= weights.sum(-1, keepdims=True)
    mixed = np.einsum("rbhqt,rbthd->rbqhd", weights, values)
    np.testing.assert_allclose(kernel.attention(query, keys, values, torch.from_numpy(allowed)), mixed, atol=1e-12)
    angles = ordinary(6, (3, 2))
    pairs = query.numpy()[..., :2] + 1j * query.numpy()[..., 2:]
    turned = pairs * np.exp(1j * angles.numpy())[:, None]  # a rotation is a product of complex numbers
    found = kernel.rotate(query, angles.cos(), angles.sin())
    np.testing.assert_allclose(found, np.concatenate([turned.real, turned.imag], axis=-1), atol=1e-12)
