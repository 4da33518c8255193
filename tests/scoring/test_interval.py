import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mutkv.scoring.interval import Interval, bootstrap, proportion


def mean_of(values):
    return lambda counts: counts @ values / counts.sum(axis=-1)


@pytest.mark.parametrize("seed", [0, 1])
def test_bootstrap_equals_scipys_percentile_bootstrap_with_the_same_seed(seed):
    values = np.array([0.0, 0.2, 0.25, 0.9, 1.0])
    truth = stats.bootstrap((values,), np.mean, n_resamples=2000, method="percentile", rng=np.random.default_rng(seed))
    low, high = truth.confidence_interval
    interval = bootstrap(mean_of(values), len(values), seed)
    assert (interval.value, interval.low, interval.high) == pytest.approx((values.mean(), low, high), rel=1e-12)


def test_bootstrap_of_an_undefined_statistic_is_undefined():
    assert bootstrap(mean_of(np.array([np.nan, 1.0])), 2, seed=0) == Interval(None, None, None)


def test_bootstrap_without_mutants_is_undefined():
    assert bootstrap(mean_of(np.array([])), 0, seed=0) == Interval(None, None, None)


def test_bootstrap_leaves_out_draws_in_which_the_statistic_is_undefined():
    interval = bootstrap(lambda counts: np.where(counts[:, 0] > 0, 0.25, np.nan), 2, seed=0)
    assert interval == Interval(0.25, 0.25, 0.25)


def test_draws_cannot_be_changed_by_a_statistic():
    def careless(counts):
        counts *= len(counts)  # spares the single row of the point estimate
        return counts[:, 0]

    with pytest.raises(ValueError, match="read-only"):
        bootstrap(careless, 3, seed=0)


@settings(deadline=None)
@given(total=st.integers(1, 500), data=st.data())
def test_wilson_interval_equals_the_textbook_formula(total, data):
    hits = data.draw(st.integers(0, total))
    z, share = stats.norm.ppf(0.975), hits / total
    centre = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * np.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    interval = proportion(hits, total, "wilson")
    assert interval.value == share
    assert (interval.low, interval.high) == pytest.approx((centre - half, centre + half), abs=1e-12)


@settings(deadline=None)
@given(total=st.integers(1, 500), data=st.data())
def test_exact_interval_equals_clopper_and_pearsons_beta_quantiles(total, data):
    hits = data.draw(st.integers(0, total))
    low = stats.beta.ppf(0.025, hits, total - hits + 1) if hits else 0.0
    high = stats.beta.ppf(0.975, hits + 1, total - hits) if hits < total else 1.0
    interval = proportion(hits, total, "exact")
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-9)


def test_no_false_alarm_in_thirty_cases_is_compatible_with_a_rate_of_a_tenth():
    interval = proportion(0, 30, "exact")
    assert (interval.value, interval.low) == (0.0, 0.0)
    assert interval.high == pytest.approx(1 - 0.025 ** (1 / 30))


@pytest.mark.parametrize("method", ["wilson", "exact"])
def test_share_of_no_cases_is_undefined(method):
    assert proportion(0, 0, method) == Interval(None, None, None)


def test_a_figure_of_a_single_mutant_has_no_interval():
    assert bootstrap(lambda counts: counts.mean(axis=1), 1, seed=0) == Interval(1.0, None, None)
