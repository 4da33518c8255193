"""Studies in the same runner: planned, resumed, healed and kept apart from faulty mutants like every other grid."""

import shutil

import pandas as pd
import pyarrow.parquet as pq
import pytest

from mutkv.configuration import Configuration
from mutkv.detectors import registry
from mutkv.detectors.judge import judge
from mutkv.errors import BaselineError, UsageError
from mutkv.grid import grid
from mutkv.grid.baseline import check_baseline
from mutkv.grid.measure import measure_group
from mutkv.grid.results import load
from mutkv.grid.scenario import find_scenario
from mutkv.kernels.exact import ExactKernel
from mutkv.studies import STUDIES, Measurement, Study
from mutkv.weights.random import random_weights

from .small_grids import execute, mutant_of, part_bytes, plan_of, run_plan

FILE = """
name = "small"
summary = "made by a test"
study = "{study}"
mutants = {mutants}
benign = {benign}
{rest}
[axes]
seed = [0, 1]
depth = [1, 2]
head_dim = 4
vocab = 8
prompt_length = 3
steps = 3
"""
START = ("session.py", "start = self.length")


def study_of(folder, mutants=("stale", "prerot"), study="causality", benign=("clean",), rest=""):
    path = folder / "small.toml"
    path.write_text(FILE.format(study=study, mutants=list(mutants), benign=list(benign), rest=rest))
    return find_scenario(str(path))


def figures(results):
    """Return what was measured as {(mutant, depth, seed, part, quantity): value}."""
    names = ["mutant", "depth", "seed", "part", "quantity"]
    frame = results.measurements.set_index(names)["value"]
    assert frame.index.is_unique
    return frame.to_dict()


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    return plan_of(study_of(tmp_path_factory.mktemp("scenario")))


@pytest.fixture(scope="module")
def whole(plan, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "out"
    execute(plan, folder)
    return folder


def test_a_study_measures_every_case_and_observes_nothing(whole):
    results = load(whole)
    assert (results.completeness.done, results.completeness.missing) == (12, 0)
    assert set(results.measurements["case_id"]) == set(results.cases["case_id"])
    assert len(results.observations) == 0
    assert results.cases[["observable", "output_changed", "infected"]].isna().all(axis=None)
    check_baseline(results)


def test_its_figures_are_those_of_the_studys_function_called_on_one_seed_alone(plan, whole):
    found = figures(load(whole))
    for group in plan.groups:
        [case] = [case for case in group.cases if (case.mutant, case.configuration.seed) == ("stale", 1)]
        alone = type(group)(group.configuration, (case,))
        [rows] = measure_group(alone, plan.mutants, "cpu", "causality")
        keys = zip(rows.measurements["part"], rows.measurements["quantity"], strict=True)
        depth = group.configuration.depth
        assert [found["stale", depth, 1, *key] for key in keys] == rows.measurements["value"]
        assert max(rows.measurements["value"]) > 0


def test_a_clean_engine_that_is_not_causal_fails_its_baseline(whole):
    results = load(whole)
    vars(results)["measurements"] = results.measurements.assign(value=1e-300)
    with pytest.raises(BaselineError, match="the clean engine is not causal: append: residual is 1e-300"):
        check_baseline(results)


def test_the_mutants_reach_their_line_and_clean_cases_have_none(whole):
    cases = load(whole).cases
    assert cases.loc[cases["mutant"] == "clean", "reached"].isna().all()
    assert cases.loc[cases["mutant"] != "clean", "reached"].eq(True).all()


def test_one_plan_gives_the_same_bytes_with_one_process_and_with_two_and_after_an_interruption(plan, whole, tmp_path):
    execute(plan, tmp_path / "two", jobs=2)
    assert part_bytes(tmp_path / "two") == part_bytes(whole)
    execute(plan, tmp_path / "cut", groups=1)
    assert load(tmp_path / "cut").completeness.missing == 6
    execute(plan, tmp_path / "cut")
    assert part_bytes(tmp_path / "cut") == part_bytes(whole)


SPOILT = (lambda table: table.slice(1), lambda table: table.drop_columns(["part"]))


@pytest.mark.parametrize("spoilt", SPOILT)
def test_measurements_that_lack_rows_or_columns_are_damaged(whole, tmp_path, spoilt):
    folder = shutil.copytree(whole, tmp_path / "out")
    path = sorted((folder / "measurements").glob("*.parquet"))[0]
    pq.write_table(spoilt(pq.read_table(path, partitioning=None)), path)
    assert load(folder).unreadable == [path.stem]


@pytest.mark.parametrize("left", [None, 0, -1])
def test_measurements_that_are_gone_or_truncated_make_their_cases_missing_until_they_are_run_again(
    plan, whole, tmp_path, left
):
    folder = shutil.copytree(whole, tmp_path / "out")
    path = sorted((folder / "measurements").glob("*.parquet"))[0]
    if left is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:left])
    results = load(folder)
    assert (results.completeness.missing, results.unreadable) == (6, [path.stem])
    there = set(results.cases["depth"])
    assert figures(results) == {key: value for key, value in figures(load(whole)).items() if key[1] in there}
    execute(plan, folder)
    assert figures(load(folder)) == figures(load(whole))


def test_mutants_that_are_added_are_all_that_is_measured_again(plan, whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "out")
    before = part_bytes(folder)
    wider = plan_of(study_of(tmp_path, ("stale", "prerot", "tril")))
    assert grid.prepare(wider, folder, 1).todo == 4
    execute(wider, folder)
    assert before.items() <= part_bytes(folder).items()
    assert {key: value for key, value in figures(load(folder)).items() if key[0] != "tril"} == figures(load(whole))


def test_a_mutant_whose_line_was_changed_is_measured_again_and_its_old_figures_are_not_read(tmp_path):
    shipped = plan_of(study_of(tmp_path, ["stale"])).mutants
    for number, line in enumerate(("start = self.length // 2", "start = max(self.length - 1, 0)")):
        (tmp_path / str(number)).mkdir()
        mutant = mutant_of(tmp_path / str(number), "mine", *START, line)
        plan = plan_of(study_of(tmp_path, ["mine", "stale"]), {"mine": mutant, **shipped})
        changed = figures(run_plan(plan, tmp_path / "out"))  # an index that is not unique would fail here
        assert changed == figures(run_plan(plan, tmp_path / f"fresh{number}"))


def test_a_mutant_that_raises_on_one_seed_is_measured_on_the_others(tmp_path):
    line = "start = self.length if (self.engine.decoder.weights['embedding'][:, 0, 1] > 0).all() else 1 // 0"
    mutant = mutant_of(tmp_path, "hostile", *START, line)
    results = run_plan(plan_of(study_of(tmp_path, ["hostile"]), {"hostile": mutant}), tmp_path / "out")
    positive = [random_weights(Configuration().model(), seed)["embedding"][0, 1] > 0 for seed in (0, 1)]
    assert sorted(positive) == [False, True]  # of the two seeds, one is spared
    hostile = results.cases.query("mutant == 'hostile'").set_index("seed")["outcome"]
    for seed, spared in enumerate(positive):
        assert set(hostile[[seed]]) == {"ok" if spared else "crashed"}
    assert set(results.measurements.query("mutant == 'hostile'")["seed"]) == {positive.index(True)}


def test_a_configuration_in_which_a_study_has_nothing_to_measure_is_refused_before_anything_is_written(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text('name = "x"\nsummary = "x"\nstudy = "gradients"\n[axes]\nprompt_length = 1\nsteps = 0')
    with pytest.raises(UsageError, match=r"small\.toml: axes: prompt_length \+ steps is 1, and predicts no token"):
        plan_of(find_scenario(str(path)))


def test_a_study_needs_no_word_about_its_control(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text('name = "x"\nsummary = "x"\nstudy = "causality"\n[axes]\nseed = 0')
    assert find_scenario(str(path)).benign == ("clean",)


def test_a_mutant_that_raises_is_crashed_and_the_others_are_measured(tmp_path):
    mutant = mutant_of(tmp_path, "hostile", *START, "start = 1 // 0")
    shipped = plan_of(study_of(tmp_path, ["stale"]))
    results = run_plan(
        plan_of(study_of(tmp_path, ["hostile", "stale"]), {"hostile": mutant, **shipped.mutants}), tmp_path / "out"
    )
    hostile = results.cases["mutant"] == "hostile"
    assert set(results.cases.loc[hostile, "outcome"]) == {"crashed"}
    assert set(results.cases.loc[hostile, "error"]) == {"ZeroDivisionError: integer division or modulo by zero"}
    assert set(results.cases.loc[~hostile, "outcome"]) == {"ok"}
    assert "hostile" not in set(results.measurements["mutant"])


def test_a_mutant_that_patches_a_kernel_is_refused_before_its_group_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(ExactKernel, "add", ExactKernel.add)  # restored at the end
    line = "start = setattr(type(self.engine.decode_kernel), 'add', lambda k, a, b: a + 2 * b) or self.length"
    mutant = mutant_of(tmp_path, "hostile", *START, line)
    with pytest.raises(BaselineError, match="mutant 'hostile' changes the clean engine"):
        run_plan(plan_of(study_of(tmp_path, ["hostile"]), {"hostile": mutant}), tmp_path / "out")
    assert list((tmp_path / "out").glob("cases/*.parquet")) == []


def test_a_figure_that_is_not_finite_is_an_outcome_of_its_seed_alone(tmp_path, monkeypatch):
    monkeypatch.setitem(
        STUDIES, "causality", Study(lambda subject: iter([Measurement("loss", "all", [float("nan"), 1.0])]))
    )
    cases = run_plan(plan_of(study_of(tmp_path, ())), tmp_path / "out").cases
    assert cases[["seed", "outcome"]].drop_duplicates().values.tolist() == [[0, "nonfinite"], [1, "ok"]]


def test_a_worker_that_died_after_its_measurements_leaves_nothing_that_could_double_them(plan, whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "out")
    run = grid.prepare(plan, folder, 1)
    task = grid.Task(plan.groups[0], plan.mutants, "small", "cpu", folder, "causality")
    pieces = grid.split_task(task)
    assert [piece.study for piece in pieces] == ["causality"] * 3
    assert run.folder / "measurements" / f"{plan.groups[0].key}.parquet" not in set(folder.rglob("*.parquet"))
    for piece in pieces:
        grid.run_task(piece)
    assert figures(load(folder)) == figures(load(whole))
    assert pd.DataFrame(load(folder).cases)["case_id"].is_unique


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"study": "causalty"}, r"unknown study 'causalty': did you mean causality\?"),
        ({"rest": 'table = "mutants"'}, "'table' has no meaning beside 'study'.*leave it out"),
        ({"benign": ["clean", "control"]}, r"has no control: leave it out of 'benign'"),
    ],
)
def test_a_study_that_cannot_be_is_refused_with_the_fix(tmp_path, changes, message):
    with pytest.raises(UsageError, match=message) as error:
        study_of(tmp_path, **changes)
    assert "\n" not in str(error.value)


def test_a_study_has_nothing_to_judge(whole):
    with pytest.raises(UsageError, match="a study has no observations to judge: 'mutkv grid show"):
        judge(load(whole), registry.default_detectors())


def test_the_study_is_part_of_what_decides_a_result(tmp_path):
    keys = {case.content_key for case in plan_of(study_of(tmp_path, ())).cases}
    assert keys.isdisjoint(case.content_key for case in plan_of(study_of(tmp_path, (), "gradients")).cases)
