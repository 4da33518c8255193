"""What a hostile mutant, a second run or a damaged file may not do: change another case, double a row, hide."""

import shutil

import pytest

from mutkv.api import flagging
from mutkv.detectors.deviation import every_step
from mutkv.detectors.judge import judge
from mutkv.errors import BaselineError, IncompleteError, UsageError
from mutkv.grid import grid
from mutkv.grid.baseline import check_baseline
from mutkv.grid.check import check_mutant
from mutkv.grid.files import locked
from mutkv.grid.results import load
from mutkv.grid.scenario import find_scenario
from mutkv.kernels.exact import ExactKernel

from .small_grids import mutant_of, plan_of, run_plan, scenario_of

AXES = "seed = [0, 1]\nvocab = 8\nprompt_length = 3\nsteps = 4"
START = ("session.py", "start = self.length")


def run_with(folder, becomes, name="hostile"):
    mutant = mutant_of(folder, name, *START, becomes)
    shipped = plan_of(scenario_of(folder, AXES, ["stale"]))
    return run_plan(
        plan_of(scenario_of(folder, AXES, [name, "stale"]), {name: mutant, **shipped.mutants}), folder / "o"
    )


@pytest.fixture
def whole(tmp_path):
    return run_plan(plan_of(scenario_of(tmp_path, AXES, ["stale"])), tmp_path / "whole")


def test_a_mutant_that_leaves_the_program_is_a_crash_and_fails_its_check(tmp_path):
    cases = run_with(tmp_path, "start = __import__('sys').exit(0)").cases
    hostile = cases[cases["mutant"] == "hostile"]
    assert (hostile["outcome"] == "crashed").all()
    assert (hostile["error"] == "SystemExit: 0").all()
    assert (cases.loc[cases["mutant"] != "hostile", "outcome"] == "ok").all()
    (tmp_path / "mutants").mkdir()
    mutant = mutant_of(tmp_path / "mutants", "leaves", *START, "start = __import__('sys').exit(0)")
    assert check_mutant(mutant, flagging) == ["the witness raises SystemExit: 0"]


def test_a_mutant_that_patches_a_kernel_is_refused_before_its_group_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(ExactKernel, "add", ExactKernel.add)  # restored at the end
    line = "start = setattr(type(self.engine.decode_kernel), 'add', lambda k, a, b: a + 2 * b) or self.length"
    with pytest.raises(BaselineError, match=r"mutant 'hostile' changes the clean engine|full path changes as well"):
        run_with(tmp_path, line)
    assert list((tmp_path / "o").glob("cases/*.parquet")) == []


def test_a_mutant_of_both_paths_that_patches_a_kernel_is_refused_as_well(tmp_path, monkeypatch):
    monkeypatch.setattr(ExactKernel, "add", ExactKernel.add)  # restored at the end
    line = "start = setattr(type(self.engine.decode_kernel), 'add', lambda k, a, b: a + 2 * b) or self.length"
    mutant = mutant_of(tmp_path, "hostile", *START, line).model_copy(update={"path": "both"})
    with pytest.raises(BaselineError, match="mutant 'hostile' changes the clean engine"):
        run_plan(plan_of(scenario_of(tmp_path, AXES, ["hostile"]), {"hostile": mutant}), tmp_path / "o")


def test_a_mutant_that_says_cached_and_changes_the_full_path_is_refused(tmp_path):
    line = ("model.py", "hidden = step.kernel.add(hidden, self.mlp(layer, hidden, step))")
    mutant = mutant_of(tmp_path, "lie", *line, "self.mlp(layer, hidden, step)")
    with pytest.raises(BaselineError, match=r"path = 'cached', but the full path changes as well"):
        run_plan(plan_of(scenario_of(tmp_path, AXES, ["lie"]), {"lie": mutant}), tmp_path / "o")


def test_what_a_mutant_prints_goes_to_stderr(tmp_path, capsys):
    run_with(tmp_path, "start = print('noise') or self.length")
    out, err = capsys.readouterr()
    assert (out, "noise" in err) == ("", True)


def test_a_second_run_on_a_folder_is_refused_while_the_first_is_at_work(tmp_path):
    with locked(tmp_path), pytest.raises(UsageError, match="another 'mutkv grid run' is at work"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_a_row_that_is_recorded_twice_is_read_once(whole):
    before, rows = whole.completeness, whole.observations.copy()
    [part] = (whole.folder / "cases").glob("*.parquet")
    for kind in ("cases", "observations"):
        shutil.copy(whole.folder / kind / part.name, whole.folder / kind / "again.parquet")
    again = load(whole.folder)
    assert again.completeness == before
    assert again.observations.equals(rows)


def test_a_damaged_page_is_never_a_figure_nor_a_detectors_fault_and_is_run_again(whole, tmp_path):
    [path] = (whole.folder / "observations").glob("*.parquet")
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 64] = bytes(64)
    path.write_bytes(data)
    with pytest.raises(IncompleteError, match="damaged: run 'mutkv grid run' again"):
        judge(load(whole.folder), [every_step])
    plan = plan_of(find_scenario(str(tmp_path / "small.toml")))
    run = grid.prepare(plan, whole.folder, 1)
    assert run.todo == len(plan.cases)
    list(run.execute(grid.executor_for(1)))
    assert load(whole.folder).completeness.done == len(plan.cases)


def test_observations_of_other_cases_are_not_taken_for_these(whole, tmp_path):
    other = run_plan(plan_of(scenario_of(tmp_path, AXES.replace("[0, 1]", "[2, 3]"), ["stale"])), tmp_path / "other")
    [path] = (whole.folder / "observations").glob("*.parquet")
    [theirs] = (other.folder / "observations").glob("*.parquet")
    shutil.copy(theirs, path)
    plan = plan_of(scenario_of(tmp_path, AXES, ["stale"]))
    assert grid.prepare(plan, whole.folder, 1).todo == len(plan.cases)


def test_a_clean_engine_without_a_finite_result_fails_the_baseline(tmp_path):
    results = run_plan(plan_of(scenario_of(tmp_path, AXES + "\nsharpness = 1e300", [])), tmp_path / "o")
    with pytest.raises(BaselineError, match="the clean engine is nonfinite in 2 of 2 clean cases"):
        check_baseline(results)


def test_what_is_named_twice_in_a_scenario_is_refused(tmp_path):
    with pytest.raises(UsageError, match="'benign' names something twice"):
        scenario_of(tmp_path, AXES, ["stale"], benign=("clean", "clean"))
