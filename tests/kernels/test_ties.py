"""Greedy choice: the lowest of equal maxima, as numpy's argmax documents it."""

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mutkv.kernels.ties import lowest_argmax

few_values = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e300, -math.inf, math.inf, 5e-324])


@given(arrays(np.float64, array_shapes(min_dims=1, max_dims=3, max_side=6), elements=few_values))
def test_choice_is_numpys_argmax_also_among_ties(logits):
    assert np.array_equal(lowest_argmax(torch.from_numpy(logits)).numpy(), logits.argmax(axis=-1))


def test_lowest_of_two_maxima_is_chosen_at_every_pair_of_places():
    for low in range(70):
        for high in range(low + 1, 70):
            logits = torch.zeros(70)
            logits[[low, high]] = 1.0
            assert lowest_argmax(logits) == low


def test_positive_and_negative_zero_tie():
    assert lowest_argmax(torch.tensor([-1.0, -0.0, 0.0])) == 1


def test_rows_with_nan_still_give_a_token_of_the_vocabulary():
    logits = torch.tensor([[math.nan] * 4, [0.0, math.nan, 1.0, 2.0], [0.0, 1.0, 1.0, 0.0]])
    chosen = lowest_argmax(logits)
    assert ((chosen >= 0) & (chosen < 4)).all()
    assert chosen[2] == 1  # its neighbours' NaN changes nothing here
