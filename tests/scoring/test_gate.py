from dataclasses import replace

import pytest

from mutkv.exit_codes import ExitCode
from mutkv.scoring import Completeness, gate, score_verdicts

from .frames import ASKED, WHOLE, benign, faulty, verdicts_of

MISSING = Completeness(planned=8, done=7, failed=0, missing=1)


def case(i, *rows):
    return [{"case_id": f"shared-{i}", **row} for row in rows]


def verdict(detector, mutant, score, **row):
    return {**faulty(mutant, score=score), "detector": detector, **row}


def score_of(*rows, completeness=WHOLE):
    return score_verdicts(verdicts_of(*rows), **(ASKED | {"completeness": completeness}))


def two(good=(1.0, 1.0), weak=(1.0, 0.0), completeness=WHOLE, **row):
    """Score ``good`` and ``weak`` on two mutants of one case each; ``row`` changes the last verdict, weak's on b."""
    rows = case(0, verdict("good", "a", good[0]), verdict("weak", "a", weak[0]))
    rows += case(1, verdict("good", "b", good[1]), verdict("weak", "b", weak[1], **row))
    return score_of(*rows, completeness=completeness)


def test_whole_results_without_a_threshold_are_ok():
    assert gate(two()) is ExitCode.OK


@pytest.mark.parametrize(("limit", "code"), [(0.5, ExitCode.OK), (0.51, ExitCode.BELOW_THRESHOLD)])
def test_a_recall_below_the_threshold_is_reported_and_an_equal_one_is_not(limit, code):
    assert gate(two(), fail_under=limit, named=["weak"]) is code


def test_only_named_detectors_are_held_to_the_threshold():
    assert gate(two(), fail_under=0.9, named=["good"]) is ExitCode.OK
    assert gate(two(), fail_under=0.9, named=["good", "weak"]) is ExitCode.BELOW_THRESHOLD


def test_with_no_name_every_detector_is_held_to_the_threshold():
    assert gate(two(), fail_under=0.9) is ExitCode.BELOW_THRESHOLD


def test_the_lower_bound_has_a_threshold_of_its_own():
    score = two()
    assert score.detectors[1].recall.low == 0.0
    assert gate(score, fail_under=0.5, fail_under_low=0.1, named=["weak"]) is ExitCode.BELOW_THRESHOLD
    assert gate(score, fail_under_low=1.0, named=["good"]) is ExitCode.OK


def test_a_recall_short_of_the_threshold_by_rounding_alone_is_not_below():
    score = two()
    weak = replace(score.detectors[1], recall=replace(score.detectors[1].recall, value=0.1 + 0.7))
    assert 0.1 + 0.7 < 0.8
    assert gate(replace(score, detectors=(weak,)), fail_under=0.8) is ExitCode.OK


def test_missing_cases_are_incomplete():
    assert gate(two(completeness=MISSING)) is ExitCode.INCOMPLETE


def test_failed_cases_alone_change_nothing():
    assert gate(two(completeness=Completeness(planned=8, done=8, failed=8, missing=0))) is ExitCode.OK


def test_a_crashed_verdict_is_incomplete_even_of_a_detector_that_is_not_named():
    assert gate(two(crashed=True), named=["good"]) is ExitCode.INCOMPLETE


def test_a_detector_that_crashed_on_all_cases_is_a_usage_error():
    score = score_of(*case(0, verdict("good", "a", 1.0), verdict("weak", "a", 0.0, crashed=True)))
    assert gate(score) is ExitCode.USAGE


def test_an_undefined_recall_cannot_pass_a_threshold():
    score = score_of(benign(), faulty("a", changed=False))
    assert gate(score, fail_under=0.0) is ExitCode.INCOMPLETE
    assert gate(score, fail_under_low=0.0) is ExitCode.INCOMPLETE
    assert gate(score) is ExitCode.OK


def test_a_recall_on_a_part_of_the_cases_cannot_pass_a_threshold():
    rows = case(0, verdict("good", "a", 1.0), verdict("weak", "a", 1.0)) + case(1, verdict("good", "b", 1.0))
    assert gate(score_of(*rows), fail_under=0.5, named=["weak"]) is ExitCode.INCOMPLETE
    assert gate(score_of(*rows), fail_under=0.5, named=["good"]) is ExitCode.OK
    assert gate(score_of(*rows), named=["weak"]) is ExitCode.OK


def test_a_named_detector_without_verdicts_is_incomplete_with_and_without_a_threshold():
    assert gate(two(), fail_under=0.1, named=["good", "kv-compare"]) is ExitCode.INCOMPLETE
    assert gate(two(), named=["kv-compare"]) is ExitCode.INCOMPLETE


def test_a_score_that_measured_nothing_is_never_ok():
    assert gate(score_of(faulty("a", path="full", crashed=True))) is ExitCode.INCOMPLETE
    assert gate(replace(two(), detectors=())) is ExitCode.INCOMPLETE


def test_incomplete_goes_before_below_threshold():
    for score in (two(completeness=MISSING), two(crashed=True)):
        assert score.detectors[1].recall.value == 0.5
        assert gate(score, fail_under=0.9) is ExitCode.INCOMPLETE


def test_an_undefined_recall_of_one_detector_goes_before_a_low_recall_of_another():
    rows = [*case(0, verdict("weak", "a", 0.0)), {**benign(), "detector": "blind"}]
    assert gate(score_of(*rows), fail_under=0.9) is ExitCode.INCOMPLETE


def test_a_broken_detector_goes_before_missing_cases_and_a_low_recall():
    rows = case(0, verdict("weak", "a", 0.0), verdict("broken", "a", 0.0, crashed=True))
    assert gate(score_of(*rows, completeness=MISSING), fail_under=0.9) is ExitCode.USAGE
