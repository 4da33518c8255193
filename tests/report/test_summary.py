"""The tables of a grid of mutants or formats: each against what plain Python finds in the Parquet rows."""

from pathlib import Path

import pandas as pd
import pytest

from mutkv.errors import UsageError
from mutkv.grid.results import Results
from mutkv.report.summary import SUMMARIES, summary
from mutkv.studies import STUDIES

from .datasets import KINDS, changed, chosen, make_dataset, recorded, worst

FORMAT = ("storage", "accumulator", "prefill_order")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return {table: make_dataset(tmp_path_factory.mktemp(table), table) for table in KINDS}


def grouped(cases, *names):
    """Return cases by the values of some columns."""
    groups = {}
    for case in cases:
        groups.setdefault(tuple(case[name] for name in names), []).append(case)
    return groups


def rows_of(tables):
    """Return the rows of a run's only table."""
    [frame] = tables.values()
    return frame.to_dict(orient="records")


def test_every_kind_of_table_is_tested_here():
    elsewhere = {"rounding", "length-profile", "batch-shape", *STUDIES}
    assert set(KINDS) | elsewhere == set(SUMMARIES)


def test_the_table_of_mutants_has_a_row_per_mutant_in_the_scenarios_order(results):
    rows, cases = rows_of(summary(results["mutants"])), recorded(results["mutants"])
    assert [row["mutant"] for row in rows] == ["stale", "posfrozen", "clean", "control"]
    for row in rows:
        mine = [case for case in cases if case["mutant"] == row["mutant"]]
        assert row["cases"] == len(mine) == 4
        assert row["max|Δ| step 1"] == worst(mine, step=1)
        assert row["max|Δ| all steps"] == worst(mine)
        assert row["output changed %"] == 100 * sum(changed(case, cases) for case in mine) / 4
        assert row["observable %"] == (100 if row["mutant"] in ("stale", "posfrozen") else 0)
    assert {row["output changed %"] for row in rows} > {0}


def test_by_a_column_the_table_of_mutants_is_that_of_each_value(results):
    rows, cases = rows_of(summary(results["mutants"], "depth")), recorded(results["mutants"])
    assert [(row["depth"], row["mutant"]) for row in rows] == [
        (depth, mutant) for depth in (1, 2) for mutant in ("stale", "posfrozen", "clean", "control")
    ]
    for row in rows:
        mine = [case for case in cases if (case["depth"], case["mutant"]) == (row["depth"], row["mutant"])]
        assert row["cases"] == len(mine) == 2
        assert row["max|Δ| step 1"] == worst(mine, step=1)
        assert row["max|Δ| all steps"] == worst(mine)
        assert row["output changed %"] == 100 * sum(changed(case, cases) for case in mine) / 2


@pytest.mark.parametrize("column", ["class", "mutant_class"])
def test_by_a_property_of_the_mutant_every_mutant_is_in_one_part(results, column):
    rows = rows_of(summary(results["mutants"], column))
    assert {row["mutant"]: row[column] for row in rows if isinstance(row[column], str)} == {
        "stale": "read",
        "posfrozen": "position",
    }
    assert sorted(row["mutant"] for row in rows) == ["clean", "control", "posfrozen", "stale"]


@pytest.mark.parametrize(("column", "near"), [("dept", "depth"), ("clas", "class")])
def test_an_unknown_column_is_refused_with_the_nearest_one(results, column, near):
    with pytest.raises(UsageError, match=f"unknown column '{column}': did you mean .*{near}"):
        summary(results["mutants"], column)


@pytest.mark.parametrize("table", ["exactness", "attention", "profile"])
def test_only_the_table_of_mutants_can_be_split(results, table):
    with pytest.raises(UsageError, match="--by: the table of scenario small is not one of mutants"):
        summary(results[table], "depth")


def test_the_table_of_exactness_has_a_row_per_format_and_order(results):
    rows, cases = rows_of(summary(results["exactness"])), recorded(results["exactness"])
    groups = grouped(cases, *FORMAT)
    assert sorted(tuple(row[name] for name in FORMAT) for row in rows) == sorted(groups)
    assert len(rows) == 4
    for row in rows:
        mine = groups[tuple(row[name] for name in FORMAT)]
        observed = [observation for case in mine for observation in case["rows"]]
        same = [chosen(each["logits_cached"]) == chosen(each["logits_full"]) for each in observed]
        assert row["runs"] == len(mine) == 2
        assert row["worst |Δ| logits"] == worst(mine)
        assert row["worst |Δ| stored K/V"] == max(case["kv_max_abs"] for case in mine)
        assert row["tokens equal %"] == pytest.approx(100 * sum(same) / len(same))
        if row["prefill_order"] == "sequential":
            assert row["worst |Δ| logits"] == row["worst |Δ| stored K/V"] == 0.0


def test_the_table_of_attention_has_the_first_layers_deviation_per_format_and_order(results):
    rows, cases = rows_of(summary(results["attention"])), recorded(results["attention"])
    groups = grouped(cases, *FORMAT)
    assert len(rows) == len(groups) == 4
    for row in rows:
        mine = groups[tuple(row[name] for name in FORMAT)]
        assert row["runs"] == 2
        assert row["max|Δ| attention, layer 1"] == max(case["attended_max_abs"] for case in mine)
        assert row["max|Δ| stored K/V"] == max(case["kv_max_abs"] for case in mine)
        assert row["max|Δ| logits"] == worst(mine)
    native = next(row for row in rows if row["storage"] == "float32" and row["prefill_order"] == "native")
    assert 0 < native["max|Δ| logits"] < 1e-4


def test_the_table_of_profiles_counts_flipped_seeds_per_length_and_sharpness(results):
    rows, cases = rows_of(summary(results["profile"])), recorded(results["profile"])
    assert [(row["sharpness"], row["prompt_length"]) for row in rows] == [(1.0, 2), (1.0, 5), (2.0, 2), (2.0, 5)]
    names = ["tril flips", "tril max|Δ|", "posoff flips", "posoff max|Δ|", "clean max|Δ|"]
    assert list(rows[0]) == ["sharpness", "prompt_length", "seeds", *names]
    groups = grouped(cases, "sharpness", "prompt_length", "mutant")
    for row in rows:
        assert row["seeds"] == 3
        for mutant in ("tril", "posoff", "clean"):
            mine = groups[row["sharpness"], row["prompt_length"], mutant]
            assert row[f"{mutant} max|Δ|"] == worst(mine)
            if mutant != "clean":
                assert row[f"{mutant} flips"] == sum(changed(case, cases) for case in mine)


def hand_made(cases, observations, mutants=("b", "a")):
    """Return results whose frames are these, without a folder."""
    told = {"scenario": "hand", "table": "mutants", "mutants": dict.fromkeys(mutants), "groups": []}
    results = Results(Path(), told, told)  # what is in the manifest and what in the plan is no matter here
    same = {"sharpness": 1.0, "prompt_length": 4, "storage": "", "accumulator": "", "prefill_order": ""}
    frame = pd.DataFrame(cases).assign(**same).astype({"observable": "boolean", "output_changed": "boolean"})
    vars(results)["cases"] = frame
    vars(results)["observations"] = pd.DataFrame(observations, columns=["case_id", "step", "max_abs"])
    return results


def test_a_case_that_failed_is_counted_and_its_observations_and_labels_are_not():
    cases = [
        {"case_id": "1", "mutant": "a", "outcome": "ok", "observable": True, "output_changed": False},
        {"case_id": "2", "mutant": "a", "outcome": "ok", "observable": True, "output_changed": True},
        {"case_id": "3", "mutant": "a", "outcome": "nonfinite", "observable": None, "output_changed": None},
        {"case_id": "4", "mutant": "b", "outcome": "crashed", "observable": None, "output_changed": None},
        {"case_id": "5", "mutant": "clean", "outcome": "ok", "observable": False, "output_changed": False},
    ]
    observations = [("1", 0, 0.0), ("1", 1, 0.25), ("2", 1, 0.5), ("2", 2, 4.0), ("3", 1, 99.0), ("5", 0, 0.0)]
    [table] = summary(hand_made(cases, observations)).values()
    table = table.astype(object)
    rows = table.where(table.notna(), None).to_dict(orient="records")
    names = ["mutant", "cases", "max|Δ| step 1", "max|Δ| all steps", "observable %", "output changed %"]
    assert [list(row) for row in rows] == [names] * 3
    assert [list(row.values()) for row in rows] == [
        ["b", 1, None, None, None, None],
        ["a", 3, 0.5, 4.0, 100.0, 50.0],
        ["clean", 1, None, 0.0, 0.0, 0.0],
    ]


def test_tokens_are_equal_where_both_paths_of_one_engine_choose_the_same():
    same = {"mutant": "clean", "outcome": "ok", "observable": False, "output_changed": False}
    results = hand_made(
        [{**same, "case_id": "1", "kv_max_abs": 0.5, "attended_max_abs": 0.5}],
        [("1", 0, 0.0), ("1", 1, 2.0), ("1", 2, 1.0)],
    )
    results.plan["table"] = "exactness"
    choices = {"argmax_cached": [1, 2, 3], "argmax_full": [1, 2, 0], "clean_argmax": [0, 0, 3]}
    vars(results)["observations"] = results.observations.assign(**choices)
    [row] = rows_of(summary(results))
    assert row["tokens equal %"] == pytest.approx(200 / 3)
    assert (row["runs"], row["worst |Δ| logits"], row["worst |Δ| stored K/V"]) == (1, 2.0, 0.5)
