import subprocess
import sys

import numpy as np
import pytest

from mutkv.errors import UsageError
from mutkv.scoring import Interval, detector_scores, score_verdicts

from .frames import ASKED, WHOLE, benign, faulty, random_verdicts, verdicts_of

NOTHING = Interval(None, None, None)


def only(*rows, **asked):
    return score_verdicts(verdicts_of(*rows), **ASKED, **asked).detectors[0]


def test_headline_recall_weighs_mutants_and_recall_of_cases_weighs_cases():
    detector = only(*[faulty("a", score=1.0)] * 3, faulty("b", score=1.0), faulty("b"), faulty("c"))
    assert detector.recall.value == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert detector.recall_cases.value == pytest.approx(4 / 6)


def test_only_positives_count_for_recall():
    assert only(faulty("a", score=1.0), faulty("a", changed=False), benign()).recall.value == 1.0


def test_mutants_without_a_positive_case_are_listed_and_not_counted():
    rows = faulty("z", changed=False), faulty("b", outcome="timeout", changed=None), faulty("a", score=1.0)
    score = score_verdicts(verdicts_of(*rows), **ASKED)
    assert score.unscored_mutants == ("b", "z")
    assert score.detectors[0].recall.value == 1.0


def test_benign_cases_are_negatives_whatever_their_label_says():
    score = score_verdicts(verdicts_of(benign("control", output_changed=True, score=1.0), benign()), **ASKED)
    assert (score.positives, score.negatives) == (0, 2)
    assert score.detectors[0].fpr["control"].value == 1.0


def test_false_positive_rate_is_taken_per_kind_of_benign_case():
    rows = benign(score=1.0), benign(), benign("control"), benign("equivalent-algebraic", score=1.0)
    rates = {kind: interval.value for kind, interval in only(*rows, faulty("a", score=1.0)).fpr.items()}
    assert rates == {"clean": 0.5, "control": 0.0, "equivalent-algebraic": 1.0}


@pytest.mark.parametrize("path", ["both", "full"])
def test_faults_outside_the_cached_path_count_nowhere(path):
    score = score_verdicts(verdicts_of(faulty("a", score=1.0, path=path), benign()), **ASKED)
    assert (score.positives, score.harmless, score.negatives, score.unscored_mutants) == (0, 0, 1, ())
    assert (score.detectors[0].flagged, score.detectors[0].cases) == (0, 1)


@pytest.mark.parametrize("outcome", ["crashed", "timeout", "nonfinite"])
def test_cases_whose_outcome_is_not_ok_count_nowhere_even_with_a_label(outcome):
    rows = faulty("a", outcome=outcome, score=1.0), benign(outcome=outcome), faulty("a"), benign()
    score = score_verdicts(verdicts_of(*rows), **ASKED)
    assert (score.positives, score.negatives, score.harmless, score.detectors[0].flagged) == (1, 1, 0, 0)


def test_label_observable_reads_its_own_column():
    rows = faulty("a", observable=True, changed=False, score=1.0), faulty("a", observable=False, changed=True)
    assert only(*rows, label="observable").recall.value == 1.0
    assert only(*rows).recall.value == 0.0


def test_unknown_label_is_refused_with_the_nearest_known_one():
    with pytest.raises(UsageError, match="did you mean observable"):
        only(benign(), label="observeable")


def test_without_positives_every_figure_that_needs_them_is_undefined():
    detector = only(benign(), faulty("a", changed=False))
    figures = detector.recall, detector.recall_cases, detector.auc, detector.auc_source
    assert figures == (NOTHING,) * 4
    assert detector.partial_auc is None


def test_without_negatives_auc_is_undefined_and_recall_is_not():
    detector = only(faulty("a", score=1.0), faulty("b"))
    assert (detector.auc, detector.auc_source, detector.partial_auc) == (NOTHING, NOTHING, None)
    assert (detector.recall.value, detector.fpr) == (0.5, {})


def test_auc_source_is_defined_by_harmless_cases_alone():
    detector = only(faulty("a", score=1.0), faulty("a", changed=False))
    assert (detector.auc.value, detector.auc_source.value) == (None, 1.0)


def test_crashed_verdicts_stay_in_the_denominators():
    detector = only(faulty("a", score=1.0), faulty("a", crashed=True), benign(crashed=True), benign())
    assert (detector.recall.value, detector.crashed, detector.cases) == (0.5, 2, 4)
    assert detector.auc.value == pytest.approx((2 + 2 * 0.5) / 4)


def test_flags_decide_recall_and_scores_decide_auc():
    detector = only(faulty("a", score=0.5, flag=False), benign(score=0.1, flag=True))
    assert (detector.recall.value, detector.recall_cases.value) == (0.0, 0.0)
    assert (detector.fpr["clean"].value, detector.auc.value) == (1.0, 1.0)
    assert detector.flagged == 1


def test_cost_is_the_mean_of_the_cases_whose_cost_is_known():
    rows = faulty("a", cost_tokens=2.0), benign(cost_tokens=5.0), benign(cost_tokens=np.nan)
    assert only(*rows).cost_tokens == 3.5
    assert only(benign(cost_tokens=np.nan)).cost_tokens is None


def test_a_rule_without_threshold_has_none():
    assert only(benign(threshold=np.nan)).threshold is None


def test_detectors_keep_the_order_in_which_they_appear():
    frame = random_verdicts(0, detectors=("zeta", "alpha", "mid"))
    assert [detector.name for detector in score_verdicts(frame, **ASKED).detectors] == ["zeta", "alpha", "mid"]


def test_cases_are_counted_once_however_many_detectors_judge_them():
    one, three = random_verdicts(0), random_verdicts(0, detectors=("a", "b", "c"))
    counts = [(s.positives, s.negatives, s.harmless) for s in (score_verdicts(f, **ASKED) for f in (one, three))]
    assert counts[0] == counts[1]
    assert sum(counts[0]) == 200


def test_the_order_of_rows_changes_no_figure():
    frame = random_verdicts(1)
    assert score_verdicts(frame, **ASKED) == score_verdicts(frame.sample(frac=1, random_state=0), **ASKED)


def test_another_seed_moves_the_bootstrap_and_no_estimate():
    frame = random_verdicts(1)
    one, other = (score_verdicts(frame, **ASKED, seed=seed).detectors[0] for seed in (0, 1))
    assert (one.recall.value, one.auc.value, one.fpr) == (other.recall.value, other.auc.value, other.fpr)
    assert one.recall != other.recall


def test_an_empty_frame_of_verdicts_scores_no_detector():
    score = score_verdicts(verdicts_of(benign()).iloc[:0], scenario="empty", completeness=WHOLE)
    assert (score.detectors, score.positives, detector_scores(score).empty) == ((), 0, True)


def test_importing_scoring_loads_neither_scipy_nor_sklearn_nor_torch():
    code = "import sys, mutkv.scoring; print({'scipy', 'sklearn', 'torch'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "set()"
