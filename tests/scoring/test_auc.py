import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from mutkv.scoring import score_verdicts
from mutkv.scoring.auc import count_pairs, partial_auc

from .frames import ASKED, benign, faulty, random_verdicts, verdicts_of

NONE = np.array([])
scores = st.lists(st.sampled_from([0.0, 5e-324, 1e-9, 0.5, 0.5 + 2**-53, 3.0]), min_size=1, max_size=30).map(np.array)
with_infinity = st.lists(st.sampled_from([0.0, 1.0, np.inf]), min_size=1, max_size=30).map(np.array)


def auc(positive, negative):
    mutant = np.zeros(len(positive), int)
    return count_pairs(positive, mutant, negative, NONE, np.array([], int)).auc(np.ones((1, 1)))[0]


def truth_of(positive, negative):
    return np.repeat([1, 0], [len(positive), len(negative)]), np.concatenate([positive, negative])


@settings(deadline=None)
@given(positive=scores, negative=scores)
def test_auc_equals_sklearns_on_random_scores_with_ties(positive, negative):
    assert auc(positive, negative) == pytest.approx(roc_auc_score(*truth_of(positive, negative)), abs=1e-12)


@settings(deadline=None)
@given(positive=with_infinity, negative=with_infinity)
def test_auc_orders_infinite_scores_highest_and_ties_them_with_each_other(positive, negative):
    pairs = [(p > n) + 0.5 * (p == n) for p in positive for n in negative]
    assert auc(positive, negative) == pytest.approx(np.mean(pairs), abs=1e-12)


@settings(deadline=None)
@given(positive=scores, negative=scores)
def test_partial_auc_equals_sklearns_on_random_scores_with_ties(positive, negative):
    expected = roc_auc_score(*truth_of(positive, negative), max_fpr=0.01)
    assert partial_auc(positive, negative) == pytest.approx(expected, abs=1e-12)


def test_partial_auc_takes_an_infinite_score_as_the_highest():
    positive, negative = np.array([np.inf, 2.0]), np.array([1.0, 0.0])
    assert partial_auc(positive, negative) == 1.0


def test_partial_auc_looks_only_at_the_first_hundredth_of_false_alarms():
    positive, negative = np.full(10, 1.0), np.append(np.zeros(97), np.full(3, 2.0))
    assert auc(positive, negative) == pytest.approx(0.97)
    assert partial_auc(positive, negative) == pytest.approx(0.5 * (1 - 0.00005 / (0.01 - 0.00005)))


def test_counts_of_mutants_give_the_auc_of_their_repeated_cases():
    positive, harmless = np.array([3.0, 1.0, 2.0, 2.0]), np.array([2.0, 0.0, 5.0])
    mutant, harmless_mutant, fixed = np.array([0, 0, 1, 2]), np.array([1, 1, 2]), np.array([0.5, 2.5])
    pairs = count_pairs(positive, mutant, fixed, harmless, harmless_mutant)
    for counts in ([1, 1, 1], [3, 0, 0], [0, 2, 1], [1, 0, 2]):
        often = np.array(counts)
        negative = np.concatenate([fixed, np.repeat(harmless, often[harmless_mutant])])
        expected = roc_auc_score(*truth_of(np.repeat(positive, often[mutant]), negative))
        assert pairs.auc(often[None, :].astype(float)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("figure", ["auc", "auc_source"])
def test_auc_interval_equals_scipys_bootstrap_that_ranks_the_cases_of_each_draw_anew(figure):
    verdicts = random_verdicts(seed=3, cases=90)
    is_faulty = verdicts["kind"] == "faulty"
    benign_scores = verdicts.loc[~is_faulty, "score"].to_numpy()
    by_mutant = verdicts[is_faulty].groupby(["mutant", "output_changed"])["score"].apply(np.array)
    mutants = sorted(set(verdicts.loc[is_faulty, "mutant"]))

    def ranked(drawn):
        positive = np.concatenate([by_mutant[mutants[i], True] for i in drawn])
        harmless = np.concatenate([by_mutant[mutants[i], False] for i in drawn])
        negative = np.append(benign_scores, harmless if figure == "auc_source" else [])
        ranks = stats.rankdata(np.append(positive, negative))[: len(positive)]
        return (ranks.mean() - (len(positive) + 1) / 2) / len(negative)

    numbers = np.arange(len(mutants))
    truth = stats.bootstrap(
        (numbers,), ranked, vectorized=False, n_resamples=2000, method="percentile", rng=np.random.default_rng(0)
    )
    interval = getattr(score_verdicts(verdicts, **ASKED).detectors[0], figure)
    expected = (ranked(numbers), *truth.confidence_interval)
    assert (interval.value, interval.low, interval.high) == pytest.approx(expected, abs=1e-12)


def test_auc_source_holds_harmless_cases_against_a_detector_and_auc_does_not():
    score = score_verdicts(
        verdicts_of(faulty("a", score=1.0), faulty("a", changed=False, score=2.0), benign()), **ASKED
    )
    assert (score.detectors[0].auc.value, score.detectors[0].auc_source.value) == (1.0, 0.5)


def test_harmless_cases_of_a_mutant_without_positives_stay_in_every_draw_of_auc_source():
    score = score_verdicts(
        verdicts_of(faulty("a", score=1.0), faulty("c", score=1.0), faulty("b", changed=False, score=2.0), benign()),
        **ASKED,
    )
    interval = score.detectors[0].auc_source
    assert (interval.value, interval.low, interval.high) == (0.5, 0.5, 0.5)
