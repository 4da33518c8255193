import json

import numpy as np
import pytest

from mutkv.scoring import Completeness, detector_scores, score_verdicts

from .frames import ASKED, benign, faulty, random_verdicts, verdicts_of


def test_json_has_exactly_the_documented_shape():
    completeness = Completeness(planned=4, done=3, failed=0, missing=1)
    frame = verdicts_of(faulty("a", score=1.0), faulty("b", changed=False), benign("control"))
    document = score_verdicts(frame, scenario="smoke", completeness=completeness, seed=7).to_json()
    detector = document["detectors"].pop()
    assert document == {
        "scenario": "smoke",
        "label": "output-changed",
        "completeness": {"planned": 4, "done": 3, "failed": 0, "missing": 1},
        "positives": 1,
        "negatives": 1,
        "harmless": 1,
        "unscored_mutants": ["b"],
        "seed": 7,
        "detectors": [],
    }
    sure = {"value": 1.0, "low": None, "high": None}  # one scorable mutant: no interval
    assert detector == {
        "name": "one-step",
        "threshold": 0.0,
        "recall": sure,
        "recall_cases": {"value": 1.0, "low": pytest.approx(0.2065, abs=1e-4), "high": 1.0},
        "fpr": {"control": {"value": 0.0, "low": 0.0, "high": pytest.approx(0.975)}},
        "auc": sure,
        "auc_source": sure,
        "partial_auc": 1.0,
        "flagged": 1,
        "crashed": 0,
        "cost_tokens": 4.0,
    }


def test_json_of_undefined_figures_is_strict_json_with_nulls():
    document = score_verdicts(verdicts_of(benign(threshold=np.nan)), **ASKED).to_json()
    detector = json.loads(json.dumps(document, allow_nan=False))["detectors"][0]
    assert detector["auc"] == {"value": None, "low": None, "high": None}
    assert (detector["threshold"], detector["partial_auc"]) == (None, None)


def test_frame_of_detectors_names_its_columns_by_the_path_in_the_json():
    score = score_verdicts(random_verdicts(0, detectors=("a", "b")), **ASKED)
    frame = detector_scores(score).set_index("detector")
    assert list(frame.index) == ["a", "b"]
    assert frame.loc["b", "fpr.equivalent-bitwise.high"] == score.detectors[1].fpr["equivalent-bitwise"].high
    assert frame.loc["a", "recall.value"] == score.detectors[0].recall.value
