"""Every label and derived column, recomputed with numpy from the logits that the dataset stores."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest

from mutkv.configuration import Configuration
from mutkv.grid.columns import CASES
from mutkv.weights import prompt_tokens

from .small_grids import EIGHT, logits_of, plan_of, run_plan, scenario_of

AXES = """
seed = [0, 1]
depth = 2
head_dim = 4
vocab = 9
batch = 2
prompt_length = [2, 3]
steps = 7
"""
VARIANTS = """
[[variants]]
weights = ["random", "near-tied"]
[[variants]]
storage = "float32"
prefill_order = ["pairwise", "native"]
[[variants]]
storage = "bfloat16"
accumulator = "float64"
prefill_order = ["sequential", "native"]
[[variants]]
storage = "bfloat16"
accumulator = "float64"
prefill_order = "pairwise"
decode_order = "native"
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    return run_plan(plan_of(scenario_of(folder, AXES, rest=VARIANTS)), folder / "out")


@pytest.fixture(scope="module")
def logits(results):
    return logits_of(results)


@pytest.fixture(scope="module")
def clean(results):
    """The clean case's id by configuration."""
    cases = results.cases[results.cases["mutant"] == "clean"]
    return dict(zip(cases["configuration_id"], cases["case_id"], strict=True))


def lowest(rows):
    return rows.argmax(axis=1)  # numpy documents: the first of several maxima


def configuration_of(case):
    return {name: getattr(case, name) for name in Configuration.__dataclass_fields__}


def test_observation_columns_follow_from_the_stored_logits(results, logits, clean):
    groups = dict(iter(results.observations.groupby("case_id")))
    for case in results.cases.itertuples():
        rows, (cached, full) = groups[case.case_id], logits[case.case_id]
        right, _ = logits[clean[case.configuration_id]]
        assert np.array_equal(rows["max_abs"], np.abs(cached - full).max(axis=1))
        assert np.array_equal(rows["argmax_cached"], lowest(cached))
        assert np.array_equal(rows["argmax_full"], lowest(full))
        assert np.array_equal(rows["clean_argmax"], lowest(right))
        top = np.sort(right, axis=1)
        assert np.array_equal(rows["clean_margin"], top[:, -1] - top[:, -2])


def test_labels_follow_from_the_cached_logits_of_the_mutant_and_of_clean(results, logits, clean):
    found = {"observable": set(), "output_changed": set()}
    groups = dict(iter(results.observations.groupby("case_id")))
    for case in results.cases.itertuples():
        right, own = logits[clean[case.configuration_id]]
        floor = {"float64": 1e-9, "float32": 1e-4}.get(case.storage, 2 * np.abs(right - own).max())
        rows, cached = groups[case.case_id], logits[case.case_id][0]
        flags = {
            "observable": np.abs(cached - right).max(axis=1) > floor,
            "output_changed": lowest(cached) != lowest(right),
        }
        assert case.floor == floor
        for label, flagged in flags.items():
            assert getattr(case, label) == flagged.any()
            found[label].add(bool(flagged.any()))
            first = rows.loc[flagged, ["request", "step"]].apply(tuple, axis=1).min() if flagged.any() else None
            what = label.removeprefix("output_")
            stored = (getattr(case, f"first_{what}_request"), getattr(case, f"first_{what}_step"))
            assert stored == first if first else pd.isna(list(stored)).all()
    assert found == {"observable": {True, False}, "output_changed": {True, False}}  # the grid shows both


def test_rows_of_a_case_are_every_step_of_every_row_at_its_position(results):
    groups = dict(iter(results.observations.groupby("case_id")))
    for case in results.cases.itertuples():
        rows = groups[case.case_id]
        steps = [(0, row, step, case.prompt_length - 1 + step, True) for row in range(2) for step in range(8)]
        columns = ["request", "row", "step", "position", "emitted"]
        assert list(rows[columns].itertuples(index=False, name=None)) == steps


def test_the_forced_token_is_the_prompts_last_one_and_then_the_clean_greedy_choice(results):
    by_case = dict(iter(results.observations.groupby("case_id")))
    for case in results.cases.itertuples():
        prompts = prompt_tokens(Configuration(**configuration_of(case)), case.seed, case.prompt_length)
        for row, rows in by_case[case.case_id].groupby("row"):
            chosen = rows["clean_argmax"].tolist()
            assert rows["forced_token"].tolist() == [prompts[row, -1], *chosen[:-1]]


def test_kind_path_and_class_say_what_the_case_is(results):
    kinds = {
        ("sequential", "sequential"): "clean",
        ("pairwise", "pairwise"): "clean",
        ("native", "native"): "clean-native",
        ("pairwise", "native"): "clean-native",
    }
    for case in results.cases.itertuples():
        if case.mutant in EIGHT:
            assert (case.kind, case.path, case.origin) == ("faulty", "cached", "seed")
        else:
            expected = "control" if case.mutant == "control" else kinds[case.prefill_order, case.decode_order]
            assert case.kind == expected
            assert pd.isna([case.path, case.mutant_class]).all()
        assert (case.scenario, case.device, case.outcome) == ("small", "cpu", "ok")
        assert pd.isna(case.error)


def test_a_split_of_two_exact_orders_is_a_kind_of_its_own(tmp_path):
    axes = 'steps = 3\nvocab = 8\nprefill_order = "sequential"\ndecode_order = "pairwise"'
    results = run_plan(plan_of(scenario_of(tmp_path, axes, ())), tmp_path / "out")
    assert dict(zip(results.cases["mutant"], results.cases["kind"], strict=True)) == {
        "clean": "clean-split",
        "control": "control",
    }


def test_identities_are_hashes_that_anyone_can_recompute(results):
    for case in results.cases.itertuples():
        columns, default = configuration_of(case), configuration_of(Configuration())
        given = {name: value for name, value in columns.items() if value != default[name]}
        text = json.dumps(given, sort_keys=True, separators=(",", ":"))
        identity = hashlib.sha256(text.encode()).hexdigest()[:20]
        assert case.configuration_id == identity
        assert case.case_id == hashlib.sha256(f"{identity}:{case.mutant}".encode()).hexdigest()[:20]
    assert results.cases["case_id"].is_unique
    assert results.cases["content_key"].is_unique
    assert results.cases["configuration_id"].nunique() == len(results.cases) / 10


def test_the_documented_columns_are_all_there(results):
    assert set(CASES.names) | {"part", "first"} == set(results.cases.columns)
    assert results.cases[["case_id", "kind", "storage", "outcome", "floor"]].notna().all(axis=None)
