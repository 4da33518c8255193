"""The smallest set of probes against a search through all subsets."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mutkv.scoring.cover import smallest_cover


@st.composite
def problems(draw):
    """Draw a boolean frame, one row per probe, and what each probe costs: little, or very different amounts."""
    rows, columns = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    flags = draw(st.lists(st.booleans(), min_size=rows * columns, max_size=rows * columns))
    costs = draw(st.lists(st.sampled_from([0, 1, 2, 3, 8, 8200, 10**6]), min_size=rows, max_size=rows))
    labels = [f"target {column}" for column in range(columns)]
    return pd.DataFrame(np.reshape(flags, (rows, columns)), columns=labels), np.array(costs, float)


def caught(catches, rows):
    """Return the names of the targets that some of these rows catch."""
    return {name for name in catches if any(catches[name].iloc[row] for row in rows)}


def covers(catches):
    """Return every smallest set of rows that catches what all rows together catch, by trying all subsets."""
    everything = caught(catches, range(len(catches)))
    for size in range(len(catches) + 1):
        found = [rows for rows in combinations(range(len(catches)), size) if caught(catches, rows) == everything]
        if found:
            return found
    raise AssertionError("all rows together catch what all rows together catch")


@settings(max_examples=40)
@given(problems())
def test_what_some_probe_catches_the_cover_catches(problem):
    catches, cost = problem
    assert caught(catches, smallest_cover(catches, cost)) == caught(catches, range(len(catches)))


@settings(max_examples=40)
@given(problems())
def test_no_subset_that_catches_as_much_has_fewer_probes(problem):
    catches, cost = problem
    assert len(smallest_cover(catches, cost)) == len(covers(catches)[0])


@settings(max_examples=40)
@given(problems())
def test_among_covers_of_equal_size_none_is_cheaper(problem):
    catches, cost = problem
    cheapest = min(cost[list(rows)].sum() for rows in covers(catches))
    assert cost[smallest_cover(catches, cost)].sum() == cheapest


LENGTHS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 200, 512, 2000, 8192)


@pytest.mark.parametrize("seed", range(3))
def test_the_cheapest_pair_is_found_among_hundreds_of_probes_a_few_of_which_cost_nearly_everything(seed):
    cost = np.array([length + step for _ in range(2) for length in LENGTHS for step in range(9)], float)
    flags = np.random.default_rng(seed).random((len(cost), 24)) < 0.6
    assert not flags.all(axis=1).any()
    first, second = np.triu_indices(len(cost), k=1)
    pairs = (flags[first] | flags[second]).all(axis=1)
    found = smallest_cover(pd.DataFrame(flags), cost)
    assert flags[found].any(axis=0).all()
    assert (len(found), cost[found].sum()) == (2, (cost[first] + cost[second])[pairs].min())


def test_a_dear_probe_that_catches_all_is_better_than_two_for_nothing():
    catches = pd.DataFrame({"a": [True, False, True], "b": [False, True, True]})
    assert smallest_cover(catches, np.array([0.0, 0.0, 1e9])) == [2]


@settings(max_examples=30)
@given(problems())
def test_the_same_frame_gives_the_same_rows_in_ascending_order_whatever_its_labels(problem):
    catches, cost = problem
    found = smallest_cover(catches, cost)
    assert found == sorted(set(found))
    renamed = catches.set_axis([f"probe {row}" for row in range(len(catches))]).set_axis(
        range(catches.shape[1]), axis=1
    )
    assert smallest_cover(renamed, cost.copy()) == found


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 2)])
def test_where_nothing_can_be_caught_no_probe_is_needed(shape):
    catches = pd.DataFrame(np.zeros(shape, dtype=bool))
    assert smallest_cover(catches, np.ones(shape[0])) == []
