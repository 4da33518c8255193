"""The tables of the studies: against plain Python on the measurements' Parquet rows, or on measurements by hand."""

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from mutkv.grid.results import Results
from mutkv.report.summary import chosen, summary

from .test_rounding import rows_of, small_run

STREAMS = [f"{what}: {part}" for what in ("append", "cache") for part in ("residual", "keys", "values")]
MUTANTS = ("unmasked", "stale", "posoff")


@pytest.fixture(scope="module")
def causality(tmp_path_factory):
    axes = {"seed": [0, 1], "depth": 3, "positions": ["rope", "learned"]}
    folder = tmp_path_factory.mktemp("causality")
    return small_run(folder, axes, study="causality", mutants=MUTANTS, benign=("clean",))


@pytest.fixture(scope="module")
def gradients(tmp_path_factory):
    axes = {"seed": [0, 1, 2], "depth": [1, 2], "heads": 1, "head_dim": 2, "vocab": 4, "positions": ["rope", "learned"]}
    return small_run(tmp_path_factory.mktemp("gradients"), axes, study="gradients", benign=("clean",))


def measured(results):
    """Return the rows of the measurements, each with the columns of its case, straight from the files."""
    found = []
    for path in sorted((results.folder / "measurements").glob("*.parquet")):
        rows = pq.read_table(results.folder / "cases" / path.name, partitioning=None).to_pylist()
        cases = {case["case_id"]: case for case in rows}
        for row in pq.read_table(path, partitioning=None).to_pylist():
            found.append({**cases[row["case_id"]], **row})
    return found


def largest(rows, **wanted):
    """Return the largest value of the rows that have these columns."""
    return max(row["value"] for row in rows if all(row[name] == value for name, value in wanted.items()))


def test_layers_has_the_largest_difference_over_seeds_and_structures_of_each_stream(causality):
    tables, found = summary(causality), measured(causality)
    assert list(tables) == ["layers", "infection"]
    assert list(tables["layers"]) == ["mutant", "layer", *STREAMS]
    rows = rows_of(tables["layers"])
    assert [(r["mutant"], r["layer"]) for r in rows] == [(m, n) for m in (*MUTANTS, "clean") for n in (1, 2, 3)]
    for row in rows:
        for name in STREAMS:
            part = f"layer {row['layer']}"
            assert row[name] == largest(found, mutant=row["mutant"], part=part, quantity=name)


def test_without_the_mask_appending_moves_what_stands_before_and_with_it_nothing_moves(causality):
    table = summary(causality)["layers"].set_index(["mutant", "layer"])
    assert (table.loc["unmasked", "append: residual"] > 0).all()
    assert table.loc["unmasked", "append: keys"].gt(0).tolist() == [False, True, True]
    assert (table.loc["clean"] == 0).all().all()
    assert (table.loc["stale"].filter(like="append") == 0).all().all()


def test_infection_has_the_largest_difference_of_each_layer_and_the_first_layer_above_zero(causality):
    found = measured(causality)
    rows = rows_of(summary(causality)["infection"])
    assert [row["mutant"] for row in rows] == [*MUTANTS, "clean"]
    for row in rows:
        layers = ["layer 1", "layer 2", "layer 3"]
        sizes = [largest(found, mutant=row["mutant"], part=part, quantity="infection") for part in layers]
        assert [row[part] for part in layers] == sizes
        assert row["first infected layer"] == next(
            (part[-1] for part, x in zip(layers, sizes, strict=True) if x), "none"
        )
    assert {row["mutant"]: row["first infected layer"] for row in rows}["clean"] == "none"


def by_hand(table, rows, mutants=()):
    """Return results whose measurements are these, without a folder; a case is a seed of a mutant and a structure."""
    told = {"scenario": "hand", "table": table, "study": table, "mutants": dict.fromkeys(mutants), "groups": []}
    results = Results(Path(), told, told)
    defaults = {
        "case_id": "c",
        "mutant": "clean",
        "seed": 0,
        "outcome": "ok",
        "positions": "rope",
        "depth": 1,
        "part": "all",
    }
    frame = pd.DataFrame([defaults | {"prompt_length": 4, "steps": 8} | row for row in rows])
    vars(results)["measurements"] = frame
    vars(results)["cases"] = frame.drop(columns=["quantity", "part", "value"]).drop_duplicates()
    return results


def layered(depth, first, **columns):
    """Return what causality measures of one case of which layers from ``first`` are wrong by 1."""
    return [
        {"quantity": name, "part": f"layer {layer}", "value": float(layer >= first), **columns}
        for layer in range(1, depth + 1)
        for name in (*STREAMS, "infection")
    ]


def test_layers_are_counted_and_not_spelled():
    tables = summary(by_hand("causality", layered(12, 2, mutant="a"), mutants=("a",)))
    assert tables["layers"]["layer"].tolist() == list(range(1, 13))
    assert tables["infection"]["first infected layer"].tolist() == ["2"]


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_what_a_case_measured_that_is_not_finite_is_in_no_figure(value):
    failed = [{**row, "value": value} for row in layered(2, 1, mutant="a", seed=1, outcome="nonfinite")]
    failed[-1]["value"] = 99.0
    [row] = rows_of(summary(by_hand("causality", layered(2, 2, mutant="a") + failed, mutants=("a",)))["infection"])
    assert (row["layer 1"], row["layer 2"]) == (0.0, 1.0)


def test_gradients_has_the_largest_error_and_size_of_each_structure(gradients):
    tables, found = summary(gradients), measured(gradients)
    assert list(chosen(gradients, tables, None)) == ["gradients"]
    rows = rows_of(tables["gradients"])
    assert sorted((row["positions"], row["depth"]) for row in rows) == [
        (p, d) for p in ("learned", "rope") for d in (1, 2)
    ]
    for row in rows:
        same = {"positions": row["positions"], "depth": row["depth"]}
        assert row["runs"] == 3
        assert row["tensors"] == len({r["part"] for r in found if all(r[k] == v for k, v in same.items())})
        assert row["largest gradient"] == largest(found, quantity="gradient size", **same) > 0
        assert row["largest error"] == largest(found, quantity="gradient error", **same) < 1e-5


def test_tensors_has_every_tensor_of_every_structure_with_its_worst_seed(gradients):
    found = measured(gradients)
    rows = rows_of(summary(gradients)["tensors"])
    assert len(rows) == len({(r["positions"], r["depth"], r["part"]) for r in found})
    for row in rows:
        same = {"positions": row["positions"], "depth": row["depth"], "part": row["tensor"]}
        for name in ("gradient size", "gradient error", "relative error"):
            assert row[name] == largest(found, quantity=name, **same)


def test_a_mutants_gradient_is_not_taken_for_that_of_the_right_engine():
    names = ("gradient size", "gradient error", "relative error")
    right = [{"quantity": name, "part": "up", "value": 1.0} for name in names]
    wrong = [{**row, "mutant": "a", "value": 7.0} for row in right]
    rows = rows_of(summary(by_hand("gradients", right + wrong, mutants=("a",)))["gradients"])
    assert {row["mutant"]: (row["largest gradient"], row["largest error"]) for row in rows} == {
        "clean": (1.0, 1.0),
        "a": (7.0, 7.0),
    }
