"""Tables of runs that are not complete, whatever part of them is missing: shorter ones, never an error."""

import itertools
import shutil

import pytest

from mutkv.grid import grid
from mutkv.grid.plan import make_plan, select_mutants
from mutkv.grid.results import load
from mutkv.grid.scenario import Axes, Scenario
from mutkv.mutation.registry import load_mutants
from mutkv.report.summary import SUMMARIES, chosen, summary
from mutkv.studies import STUDIES

SMALL = {"head_dim": 4, "vocab": 8, "prompt_length": 3, "steps": 3, "seed": [0, 1]}
VARIANTS = {
    "rounding": [{}, {"decode_order": ["pairwise"]}],
    "length-profile": [{"prompt_length": [2]}, {"prompt_length": [5], "sharpness": [2.0]}],
    "batch-shape": [{"prefill_order": ["native"], "batch": [size], "storage": ["float32"]} for size in (1, 2)],
    "training-prefix": [{"prompt_length": [length], "steps": [10 - length]} for length in (2, 6)],
}
QUICK = {"BUDGET": 1, "CURVE_STEPS": 1, "CHECK_EVERY": 1}


def small(kind):
    about = {"study": kind, "benign": ["clean"]} if kind in STUDIES else {"table": kind}
    names = [] if kind in ("gradients", "training-prefix") else ["stale", "tril"]
    variants = [Axes(**variant) for variant in VARIANTS.get(kind, [{"depth": [1]}, {"depth": [2]}])]
    axes = Axes(**SMALL | ({"storage": "float32", "prefill_order": "native"} if kind == "training-prefix" else {}))
    return Scenario(name="small", summary="made by a test", mutants=names, axes=axes, variants=variants, **about)


@pytest.fixture(scope="module", params=SUMMARIES)
def whole(request, tmp_path_factory):
    """A small complete run of every kind."""
    scenario, known = small(request.param), load_mutants()
    folder = tmp_path_factory.mktemp("whole") / "out"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in QUICK.items():
            patch.setattr(f"mutkv.studies.training_prefix.{name}", value)
        run = grid.prepare(make_plan(scenario, select_mutants(scenario, known, known), "cpu"), folder, 1)
        with grid.executor_for(1) as executor:
            list(run.execute(executor))
    return folder


def test_every_choice_of_parts_has_tables_of_the_same_names(whole, tmp_path):
    names = list(summary(load(whole)))
    parts = sorted((whole / "cases").glob("*.parquet"))
    assert len(parts) == 2
    for number, kept in enumerate(itertools.chain.from_iterable(itertools.combinations(parts, n) for n in (0, 1))):
        folder = shutil.copytree(whole, tmp_path / str(number))
        for part in parts:
            if part not in kept:
                (folder / "cases" / part.name).unlink()
        results = load(folder)
        tables = summary(results)
        assert list(tables) == names
        assert set(chosen(results, tables, None)) == set(names) - set(SUMMARIES[results.table].data)


def test_runs_in_which_every_case_failed_have_tables_too(whole):
    results = load(whole)
    vars(results)["cases"] = results.cases.assign(outcome="crashed")
    vars(results)["measurements"] = results.measurements.iloc[:0]
    assert list(summary(results)) == list(summary(load(whole)))
