"""One plan on an empty folder gives the same bytes, however often it was interrupted and whoever did the work."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from mutkv.grid import grid
from mutkv.grid.results import load

from .small_grids import assert_same_rows, execute, part_bytes, plan_of, run_plan, scenario_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    return plan_of(scenario_of(tmp_path_factory.mktemp("scenario")))


@pytest.fixture(scope="module")
def whole(plan, tmp_path_factory):
    """The folder of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    execute(plan, folder)
    return folder


def test_the_plan_is_on_disk_before_anything_runs(plan, tmp_path):
    run = grid.prepare(plan, tmp_path / "out", 1)
    results = load(tmp_path / "out")
    counts = results.completeness
    assert run.todo == len(plan.cases) == 40
    assert (counts.planned, counts.done, counts.failed, counts.missing) == (40, 0, 0, 40)
    assert len(list(results.missing())) == 40
    assert {name for name, *_ in map(str.split, results.missing())} == {case.mutant for case in plan.cases}
    assert part_bytes(tmp_path / "out") == {}


def test_a_second_run_computes_nothing_and_changes_no_part(plan, whole):
    before = part_bytes(whole)
    run = grid.prepare(plan, whole, 1)
    assert (run.todo, run.pending) == (0, ())
    with grid.executor_for(1) as executor:
        assert list(run.execute(executor)) == []
    assert part_bytes(whole) == before


def test_two_runs_give_the_same_parts_and_plan(plan, whole, tmp_path):
    execute(plan, tmp_path)
    assert part_bytes(tmp_path) == part_bytes(whole)
    assert (tmp_path / "plan.json").read_bytes() == (whole / "plan.json").read_bytes()
    assert len(part_bytes(whole)) == 4  # two groups: depth 1 and 2


def test_times_are_kept_outside_the_results(plan, whole):
    times = pd.read_parquet(whole / "timings.parquet")
    assert set(times["part"]) == {Path(name).stem for name in part_bytes(whole)}
    assert times["cases"].sum() == len(plan.cases)
    assert (times["seconds"] > 0).all()
    assert not any("second" in name or "time" in name for name in load(whole).cases.columns)


def test_a_run_stopped_between_groups_is_loadable_and_resumes_to_the_same_bytes(plan, whole, tmp_path):
    [first] = execute(plan, tmp_path, groups=1)
    counts = load(tmp_path).completeness
    assert (counts.planned, counts.done, counts.missing) == (40, 20, 20)
    [second] = execute(plan, tmp_path)
    assert first.part != second.part
    assert part_bytes(tmp_path) == part_bytes(whole)
    assert set(pd.read_parquet(tmp_path / "timings.parquet")["part"]) == {first.part, second.part}


def test_adding_mutants_later_computes_only_them_and_gives_equal_rows(whole, tmp_path):
    few = plan_of(scenario_of(tmp_path, mutants=("stale", "tril"), benign=("clean",)))
    execute(few, tmp_path / "out")
    recorded = part_bytes(tmp_path / "out")
    plan = plan_of(scenario_of(tmp_path))
    assert grid.prepare(plan, tmp_path / "out", 1).todo == 40 - 12
    results = run_plan(plan, tmp_path / "out")
    assert recorded.items() < part_bytes(tmp_path / "out").items()
    assert_same_rows(results, load(whole))


def test_adding_seeds_later_gives_equal_rows_also_where_the_gaps_differ_by_mutant(whole, tmp_path):
    axes = "depth = [1, 2]\nhead_dim = 4\nvocab = 8\nprompt_length = 3\nsteps = 8\nseed = {}"
    execute(plan_of(scenario_of(tmp_path, axes.format(1), mutants=("evict", "posoff"))), tmp_path / "out")
    execute(plan_of(scenario_of(tmp_path, axes.format(0), mutants=("posoff", "tril"))), tmp_path / "out")
    assert_same_rows(run_plan(plan_of(scenario_of(tmp_path)), tmp_path / "out"), load(whole))


def test_cases_are_read_in_the_plans_order_whatever_the_order_in_which_they_were_run(whole, tmp_path):
    execute(plan_of(scenario_of(tmp_path, mutants=("tril",), benign=("control",))), tmp_path / "out")
    plan = plan_of(scenario_of(tmp_path))
    for results in (run_plan(plan, tmp_path / "out"), load(whole)):
        assert results.cases["case_id"].tolist() == [case.case_id for case in plan.cases]


def test_rows_that_the_plan_does_not_ask_for_are_not_read(whole, tmp_path):
    plan = plan_of(scenario_of(tmp_path))
    execute(plan, tmp_path / "out")
    few = plan_of(scenario_of(tmp_path, mutants=("stale",), benign=("clean",)))
    assert grid.prepare(few, tmp_path / "out", 1).todo == 0
    results = load(tmp_path / "out")
    assert results.completeness.planned == len(results.cases) == 8
    assert set(results.cases["mutant"]) == {"stale", "clean"}
    assert set(results.observations["case_id"]) == set(results.cases["case_id"])


def test_two_workers_give_the_bytes_of_one(plan, whole, tmp_path):
    finished = execute(plan, tmp_path, jobs=2)
    assert sum(sum(done.outcomes.values()) for done in finished) == 40
    assert part_bytes(tmp_path) == part_bytes(whole)


def test_a_worker_lost_after_it_wrote_its_part_doubles_no_row(plan, whole, tmp_path):
    class Losing(grid.InProcess):
        """Does each task, and then, as if the worker had died before it could say so, its pieces."""

        def run(self, tasks):
            for task in tasks:
                grid.run_task(task)
                yield from grid.InProcess(grid.run_task).run(grid.split_task(task))

    list(grid.prepare(plan, tmp_path, 2).execute(Losing(grid.run_task)))
    results = load(tmp_path)
    assert (results.completeness.done, results.completeness.missing) == (40, 0)
    assert sum(pq.read_metadata(path).num_rows for path in (tmp_path / "cases").glob("*.parquet")) == 40
    assert_same_rows(results, load(whole))


KILLED = """
import os, signal, sys
from pathlib import Path
from mutkv.grid import store
from tests.grid.small_grids import execute, plan_of, scenario_of

folder, moment = Path(sys.argv[1]), sys.argv[2]
calls = 0
replace = Path.replace

def replace_or_die(self, target):
    global calls
    if Path(target).suffix == ".parquet":
        calls += 1
        if calls == int(moment):  # 3: observations of the second group; 4: its cases, observations being there
            os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)

Path.replace = replace_or_die
execute(plan_of(scenario_of(folder)), folder / "out")
"""


@pytest.mark.parametrize("moment", [3, 4])
def test_kill_9_in_the_middle_of_writing_leaves_a_dataset_that_loads_and_completes(plan, whole, tmp_path, moment):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(moment)]
    assert subprocess.run(command, env=environment, timeout=120).returncode == -signal.SIGKILL
    out = tmp_path / "out"
    results = load(out)
    assert (results.completeness.done, results.completeness.missing) == (20, 20)
    assert len(results.observations) == 20 * 9
    assert results.unreadable == []
    execute(plan, out)
    assert part_bytes(out) == part_bytes(whole)
    assert load(out).completeness.done == 40
