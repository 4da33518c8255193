"""The shipped grids of clean engines: exact arithmetic is exact, native arithmetic is as close as the handbook says."""

import pytest

from mutkv.grid.scenario import find_scenario

from .small_grids import plan_of, run_plan


def test_handbook_attention_is_exact_or_within_a_millionth(tmp_path):
    results = run_plan(plan_of(find_scenario("handbook")), tmp_path)
    cases = results.cases.set_index("case_id")
    native = cases["prefill_order"] == "native"
    assert (native.sum(), (~native).sum()) == (30, 30)
    assert (cases.loc[~native, ["kv_max_abs", "attended_max_abs"]] == 0.0).all(axis=None)
    assert 0.0 < cases.loc[native, "attended_max_abs"].max() <= 1e-6
    worst = results.observations.groupby("case_id")["max_abs"].max()
    assert (worst[cases.index[~native]] == 0.0).all()
    assert 0.0 < worst[cases.index[native]].max() <= 1e-5
    assert set(cases["kind"]) == {"clean", "clean-native"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exactness", "exactness-rope"])
def test_all_1296_runs_are_exact_and_every_token_equal(name, tmp_path):
    results = run_plan(plan_of(find_scenario(name)), tmp_path)
    rows, cases = results.observations, results.cases
    assert results.completeness.done == 1296
    assert cases.groupby(["storage", "accumulator"]).size().tolist() == [432] * 3
    assert (rows["max_abs"] == 0.0).all()
    assert (rows["argmax_cached"] == rows["argmax_full"]).all()
    assert (cases[["kv_max_abs", "attended_max_abs"]] == 0.0).all(axis=None)
