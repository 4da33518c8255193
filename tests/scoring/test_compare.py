import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mutkv.errors import UsageError
from mutkv.scoring import Interval, compare, score_verdicts

from .frames import ASKED, benign, faulty, random_verdicts, verdicts_of


def pair(case_id, make, first, second):
    return [{"detector": name, "case_id": case_id, **make(score)} for name, score in (("a", first), ("b", second))]


def hand():
    def position(score):
        return faulty("p", score=score)

    def mask(score):
        return faulty("m", score=score)

    def clean(score):
        return benign(score=score)

    return verdicts_of(*pair("1", position, 1.0, 1.0), *pair("2", mask, 2.0, 0.0), *pair("3", clean, 0.0, 0.5))


def test_differences_are_first_minus_second():
    comparison = compare(hand(), "a", "b")
    assert (comparison.recall.value, comparison.auc.value) == (0.5, 0.5)
    assert compare(hand(), "b", "a").recall.value == -0.5


def test_differences_are_those_of_the_two_scores():
    frame = random_verdicts(4, detectors=("a", "b"))
    a, b = score_verdicts(frame, **ASKED).detectors
    comparison = compare(frame, "a", "b")
    assert comparison.recall.value == pytest.approx(a.recall.value - b.recall.value, abs=1e-12)
    assert comparison.auc.value == pytest.approx(a.auc.value - b.auc.value, abs=1e-12)


def test_interval_of_a_difference_equals_scipys_paired_bootstrap():
    frame = random_verdicts(4, detectors=("a", "b"))
    positive = frame[frame["output_changed"]]
    recall = positive.pivot_table(index="mutant", columns="detector", values="flag", aggfunc="mean").astype(float)
    truth = stats.bootstrap(
        (recall["a"].to_numpy(), recall["b"].to_numpy()),
        lambda a, b, axis: a.mean(axis) - b.mean(axis),
        paired=True,
        n_resamples=2000,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    interval = compare(frame, "a", "b").recall
    assert (interval.low, interval.high) == pytest.approx(tuple(truth.confidence_interval), abs=1e-12)


def test_a_detector_does_not_differ_from_itself():
    comparison = compare(random_verdicts(4), "one-step", "one-step")
    assert comparison.recall == comparison.auc == Interval(0.0, 0.0, 0.0)


def test_only_cases_that_both_judge_are_compared():
    extra = verdicts_of({**faulty("p"), "detector": "a", "case_id": "4"}, {**faulty("m"), "detector": "b"})
    assert compare(pd.concat([hand(), extra]), "a", "b") == compare(hand(), "a", "b")


def test_without_benign_cases_the_difference_in_auc_is_undefined():
    frame = hand()
    assert compare(frame[frame["kind"] == "faulty"], "a", "b").auc == Interval(None, None, None)


def test_an_unknown_detector_is_refused_with_the_nearest_known_one():
    with pytest.raises(UsageError, match="did you mean one-step"):
        compare(random_verdicts(4), "one-step", "onestep")
