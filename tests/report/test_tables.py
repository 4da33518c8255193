"""Tables of scores, plans and progress: what a reader sees of a score, and what a program does."""

import json
import shutil

import pandas as pd
import pytest

from mutkv.detectors import default_detectors, load_detectors
from mutkv.grid.plan import make_plan
from mutkv.grid.results import load
from mutkv.grid.scenario import Axes, Scenario
from mutkv.mutation.registry import load_mutants
from mutkv.report.catalogue import detectors_table, mutants_table
from mutkv.report.scores import by_table, flat_table, interval, score_lines, score_table
from mutkv.report.status import plan_table, status_table
from mutkv.scoring import Completeness, DetectorScore, Interval, Score

from .datasets import make_dataset

UNDEFINED = Interval()
HALF = Interval(0.5, 0.1234, 0.9876)


def score_of(crashed=0, **changes):
    """Return a score of one detector, of which each figure can be told from the others."""
    fpr = {"clean": Interval(0.0, 0.0, 0.369), "control": Interval(1.0, 0.631, 1.0)}
    detector = DetectorScore(
        name="mine",
        threshold=0.0,
        recall=HALF,
        recall_cases=Interval(0.25, 0.2, 0.3),
        fpr=fpr,
        auc=UNDEFINED,
        auc_source=Interval(0.7, 0.6, 0.8),
        partial_auc=None,
        flagged=7,
        crashed=crashed,
        cost_tokens=18.0,
        cases=9,
    )
    counts = {"positives": 4, "negatives": 3, "harmless": 2, "unscored_mutants": ("b", "c")} | changes
    whole = Completeness(planned=9, done=7, failed=1, missing=1)
    return Score(scenario="hand", label="observable", completeness=whole, seed=0, detectors=(detector,), **counts)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(HALF, "0.500\n[0.12, 0.99]"), (UNDEFINED, "n/a"), (Interval(0.0, 0.0, 0.0), "0.000\n[0.00, 0.00]")],
)
def test_an_interval_stands_below_its_figure_and_an_undefined_one_is_n_a(value, shown):
    assert interval(value) == shown


def test_a_table_of_scores_has_every_figure_in_its_column():
    [row] = score_table(score_of()).to_dict(orient="records")
    assert row == {
        "detector": "mine",
        "recall": "0.500\n[0.12, 0.99]",
        "recall,\ncases": "0.250\n[0.20, 0.30]",
        "FPR\nclean": "0.000\n[0.00, 0.37]",
        "FPR\ncontrol": "1.000\n[0.63, 1.00]",
        "AUC": "n/a",
        "AUC,\nsource": "0.700\n[0.60, 0.80]",
        "flagged": 7,
        "tokens\nper case": 18.0,
    }


def test_crashed_verdicts_have_a_column_only_where_there_are_some():
    assert "crashed" not in score_table(score_of())
    assert score_table(score_of(crashed=3))["crashed"].tolist() == [3]


def test_completeness_stands_above_every_figure_and_mutants_without_a_positive_are_named():
    assert score_lines(score_of()) == (
        "hand: 9 cases planned, 7 done, 1 failed, 1 missing\n"
        "label observable: 4 positives, 2 harmless, 3 benign; without a positive case: b, c"
    )
    assert "without a positive" not in score_lines(score_of(unscored_mutants=()))


def test_a_split_table_has_the_value_and_its_positives_before_each_row():
    table = by_table({"read": score_of(), None: score_of(positives=1)}, "class")
    assert list(table.columns[:3]) == ["class", "positives", "detector"]
    assert table["class"].tolist() == ["read", "none"]
    assert table["positives"].tolist() == [4, 1]


def test_the_flat_table_has_every_figure_under_its_path_in_the_json():
    table = flat_table({"read": score_of()}, "class")
    [row] = table.to_dict(orient="records")
    document = score_of().to_json()["detectors"][0]
    assert row["class"] == "read"
    for key in ("recall", "recall_cases", "auc_source"):
        assert {part: row[f"{key}.{part}"] for part in ("value", "low", "high")} == document[key]
    assert (row["fpr.control.low"], row["flagged"], row["cost_tokens"]) == (0.631, 7, 18.0)
    assert pd.isna(row["auc.value"])
    assert "class" not in flat_table({None: score_of()}, None)


def test_a_plan_shows_only_the_columns_in_which_its_groups_differ():
    axes = Axes(seed=[0, 1, 2], depth=[1, 2], heads=[2, 4])
    scenario = Scenario(name="small", summary="made by a test", mutants=("tril",), axes=axes)
    table = plan_table(make_plan(scenario, {"tril": load_mutants()["tril"]}, "cpu"))
    assert list(table) == ["depth", "heads", "kv_heads", "seeds", "cases per seed", "cases"]
    assert table.to_numpy().tolist() == [[d, h, h, 3, 3, 9] for d in (1, 2) for h in (2, 4)]


def test_the_status_counts_done_failed_and_missing_cases_per_mutant(tmp_path):
    folder = make_dataset(tmp_path / "whole", "mutants").folder
    copy = shutil.copytree(folder, tmp_path / "part")
    sorted((copy / "cases").glob("*.parquet"))[0].unlink()
    results = load(copy)
    frame = results.cases
    failed = (frame["mutant"] == "stale") & (frame["seed"] == 1)
    vars(results)["cases"] = frame.assign(outcome=frame["outcome"].mask(failed, "crashed"))
    rows = {row.pop("mutant"): list(row.values()) for row in status_table(results).to_dict(orient="records")}
    assert rows == {
        "clean": [4, 2, 0, 2],
        "control": [4, 2, 0, 2],
        "stale": [4, 1, 1, 2],
        "posfrozen": [4, 2, 0, 2],
    }
    assert list(status_table(results)) == ["mutant", "planned", "done", "failed", "missing"]


def test_the_catalogue_of_detectors_says_which_run_by_default():
    table = detectors_table().set_index("detector")
    assert list(table.index) == list(load_detectors())
    assert set(table.index[table["by default"] == "yes"]) == {detector.name for detector in default_detectors()}
    assert (table.loc["kv-compare", "by default"], table.loc["kv-compare", "needs"]) == ("no", "kv")
    assert table.loc["allclose", "threshold"] == 1e-5
    assert table["rule"].str.len().min() > 10


def test_the_catalogue_of_mutants_is_what_their_files_say():
    table = mutants_table(load_mutants()).set_index("mutant")
    assert table.loc["posfrozen"].tolist()[:4] == ["position", "seed", "cached", "step 2"]
    assert json.loads(table.to_json())["class"]["tril"] == "mask"
