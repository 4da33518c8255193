import math

import pytest

from mutkv.errors import UsageError
from mutkv.scoring import killers, mutant_scores, score_verdicts

from .frames import ASKED, benign, faulty, random_verdicts, verdicts_of


def judged(case_id, mutant, first, second, **row):
    return [
        {"detector": name, "case_id": case_id, **faulty(mutant, score=score, **row)}
        for name, score in (("one-step", first), ("all", second))
    ]


FRAME = verdicts_of(
    *judged("1", "stale", 1.0, 1.0, mutant_class="write"),
    *judged("2", "stale", 0.0, 1.0, mutant_class="write"),
    *judged("3", "stale", 1.0, 1.0, mutant_class="write", changed=False),
    *judged("4", "evict", 0.0, 0.0, origin="reported", changed=False),
    *judged("5", "heads", 0.0, 1.0, path="both"),
    *judged("6", "loop", 0.0, 0.0, outcome="timeout", changed=None),
    {"detector": "one-step", **benign()},
)


def test_each_faulty_mutant_has_a_row_with_its_cases_and_recalls():
    rows = mutant_scores(FRAME).set_index("mutant")
    assert list(rows.columns) == ["mutant_class", "origin", "path", "positives", "harmless", "one-step", "all"]
    assert rows.loc["stale"].tolist() == ["write", "seed", "cached", 2, 1, 0.5, 1.0]
    assert rows.loc["evict"].tolist()[:5] == ["position", "reported", "cached", 0, 1]


def test_faults_of_both_paths_have_a_row_here():
    assert mutant_scores(FRAME).set_index("mutant").loc["heads"].tolist()[2:] == ["both", 1, 0, 0.0, 1.0]


def test_a_mutant_whose_cases_all_failed_has_a_row_here():
    assert mutant_scores(FRAME).set_index("mutant").loc["loop", ["positives", "harmless"]].tolist() == [0, 0]


def test_recall_without_a_positive_case_is_nan():
    assert all(
        math.isnan(recall) for recall in mutant_scores(FRAME).set_index("mutant").loc["evict", ["one-step", "all"]]
    )


def test_benign_cases_have_no_row():
    assert set(mutant_scores(FRAME)["mutant"]) == {"stale", "evict", "heads", "loop"}


def test_the_mean_of_the_cached_rows_is_the_headline_recall():
    frame = random_verdicts(5, detectors=("a", "b"))
    recall = {d.name: d.recall.value for d in score_verdicts(frame, **ASKED).detectors}
    assert mutant_scores(frame)[["a", "b"]].mean().to_dict() == pytest.approx(recall, abs=1e-12)


def test_the_label_decides_what_is_positive():
    frame = random_verdicts(5)
    rows = mutant_scores(frame, "observable")
    assert (rows["positives"].sum(), rows["harmless"].sum()) == ((frame["kind"] == "faulty").sum(), 0)


def test_unknown_label_is_refused():
    with pytest.raises(UsageError, match="unknown label"):
        mutant_scores(FRAME, "changed")


def test_killers_are_told_from_those_that_kill_always():
    rows = killers(mutant_scores(FRAME)).set_index("mutant")
    assert rows.loc["stale"].tolist() == [["one-step", "all"], ["all"]]
    assert rows.loc["heads"].tolist() == [["all"], ["all"]]


def test_nobody_kills_a_mutant_without_positive_cases():
    assert killers(mutant_scores(FRAME)).set_index("mutant").loc["evict"].tolist() == [[], []]


def test_without_faulty_cases_there_are_no_rows():
    rows = mutant_scores(verdicts_of(benign()))
    assert (len(rows), rows.columns[0], len(killers(rows))) == (0, "mutant", 0)
