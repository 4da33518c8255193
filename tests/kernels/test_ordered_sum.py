"""The definition of the two exact orders, against loops and recursions written without torch."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mutkv.kernels.plain import exp, mix, ordered_sum, shifted_scores, sqrt

from .bits import INTEGERS, awkward, same_bits

ORDERS = ("sequential", "pairwise")
DTYPES = (torch.float64, torch.float32, torch.bfloat16)

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
terms_64 = st.lists(finite, min_size=1, max_size=40)
terms_32 = st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=40)


def bits(number):
    return np.float64(number).tobytes()


def halves(terms):
    """Sum by recursion: the even-indexed terms' sum plus the odd-indexed ones', of a list a power of two long."""
    if len(terms) == 1:
        return terms[0]
    return halves(terms[0::2]) + halves(terms[1::2])


def pairwise(terms, zero=0.0):
    size = 1
    while size < len(terms):
        size *= 2
    return halves([term + zero for term in terms] + [zero] * (size - len(terms)))


@given(terms_64)
def test_sequential_sum_is_a_loop_over_python_floats(terms):
    total = 0.0
    for term in terms:
        total += term
    found = ordered_sum(torch.tensor(terms, dtype=torch.float64), "sequential").item()
    assert bits(found) == bits(total) or (math.isnan(found) and math.isnan(total))


@given(terms_64)
def test_pairwise_sum_is_the_recursion_over_even_and_odd_terms(terms):
    found = ordered_sum(torch.tensor(terms, dtype=torch.float64), "pairwise").item()
    total = pairwise(terms)
    assert bits(found) == bits(total) or (math.isnan(found) and math.isnan(total))


@given(terms_32)
def test_float32_sums_round_after_every_addition(terms):
    numbers = list(np.array(terms, dtype=np.float32))
    total = np.float32(0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        for number in numbers:
            total = total + number
        tree = pairwise(numbers, np.float32(0.0))
    tensor = torch.tensor(terms, dtype=torch.float32)
    assert same_bits(ordered_sum(tensor, "sequential"), torch.tensor(total))
    assert same_bits(ordered_sum(tensor, "pairwise"), torch.tensor(tree))


def test_the_two_orders_are_different_sums():
    terms = torch.tensor([1.0, 1e16, -1e16, 1.0], dtype=torch.float64)
    assert ordered_sum(terms, "sequential").item() == 1.0  # 1 is lost in 1e16
    assert ordered_sum(terms, "pairwise").item() == 0.0  # (1 - 1e16) + (1e16 + 1), both ones lost


@given(terms_64, st.integers(0, 70), st.integers(0, 70))
def test_no_number_of_zeros_on_either_side_changes_a_bit(terms, before, after):
    padded = torch.tensor([0.0] * before + terms + [0.0] * after, dtype=torch.float64)
    for order in ORDERS:
        assert same_bits(ordered_sum(padded, order), ordered_sum(torch.tensor(terms, dtype=torch.float64), order))


@given(st.integers(0, 2**32), st.integers(1, 30), st.integers(0, 40))
def test_masked_terms_of_either_sign_change_no_bit(seed, length, masked):
    generator = np.random.default_rng(seed)
    zeros = torch.from_numpy(generator.choice([0.0, -0.0], masked))
    for dtype in DTYPES:
        terms = awkward(seed, length, dtype)
        for order in ORDERS:
            longer = ordered_sum(torch.cat([terms, zeros.to(dtype)]), order)
            assert same_bits(longer, ordered_sum(terms, order))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("length", [1, 2, 3, 8])
def test_a_sum_of_negative_zeros_is_positive_zero_at_every_length(order, length):
    total = ordered_sum(torch.full((length,), -0.0, dtype=torch.float64), order)
    assert bits(total.item()) == bits(0.0)


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 7), st.integers(1, 9))
def test_attention_is_the_same_whether_later_keys_are_masked_or_not_there(seed, seen, width, hidden):
    for dtype in DTYPES:
        query, keys, values = (awkward(seed + i, (2, 1, n, 2, width), dtype, 0) for i, n in enumerate((1, 20, 20)))
        for order in ORDERS:
            outputs = []
            for total in (seen, seen + hidden):
                allowed = torch.arange(total)[None] < seen
                scores = shifted_scores(
                    query, keys[:, :, :total], allowed, torch.empty(0, 0, 0), math.sqrt(width), order
                )
                outputs.append(mix(exp(scores), values[:, :, :total], order))
            assert same_bits(*outputs)


def test_exp_and_sqrt_of_narrow_formats_round_the_float64_result():
    for dtype in DTYPES:
        values = awkward(0, 300, dtype, 0).abs().clamp(max=80)
        for ours, theirs in ((exp, np.exp), (sqrt, np.sqrt)):
            true = torch.from_numpy(theirs(values.double().numpy())).to(dtype)
            steps = ours(values).view(INTEGERS[dtype]).long() - true.view(INTEGERS[dtype]).long()
            assert steps.abs().max() <= (1 if dtype is torch.float64 else 0)
