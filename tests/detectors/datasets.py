"""Small datasets for the tests of detectors, and their rows read by pyarrow alone."""

import numpy as np
import pyarrow.parquet as pq

from mutkv.detectors.detector import detector
from mutkv.detectors.judge import judge
from mutkv.grid import grid
from mutkv.grid.executors import InProcess
from mutkv.grid.plan import make_plan
from mutkv.grid.results import load
from mutkv.grid.scenario import Axes, Scenario
from mutkv.mutation.registry import load_mutants

EIGHT = ("evict", "freeze", "posfrozen", "posoff", "poszero", "prerot", "stale", "tril")
SMALL = {"head_dim": 4, "vocab": 8, "prompt_length": 3, "steps": 8}


def make_dataset(folder, mutants=EIGHT, **axes):
    """Run a scenario with these axes into a folder and load it."""
    scenario = Scenario(name="small", summary="made by a test", mutants=mutants, axes=Axes(**SMALL | axes))
    run = grid.prepare(make_plan(scenario, {m: load_mutants()[m] for m in mutants}, "cpu"), folder, 1)
    list(run.execute(InProcess(grid.run_task)))
    return load(folder)


def recorded(results):
    """Yield each case's row and its observations as numpy columns, logits ``[N, V]``, straight from the files."""
    for part in sorted((results.folder / "cases").glob("*.parquet")):
        observations = pq.read_table(results.folder / "observations" / part.name, partitioning=None)
        ids = np.array(observations["case_id"].to_pylist())
        for row in pq.read_table(part, partitioning=None).to_pylist():
            mine = observations.take(np.flatnonzero(ids == row["case_id"]))
            yield row, {name: np.array(mine[name].to_pylist()) for name in mine.column_names}


def scores(results, *detectors):
    """Return the verdicts of detectors that must not warn, indexed by (detector, case_id)."""
    verdicts = judge(results, detectors)
    assert verdicts.warnings == ()
    return verdicts.frame.set_index(["detector", "case_id"])


def flagged(results, which):
    """Return the share of cases that a detector flags, by mutant."""
    return judge(results, [which]).frame.groupby("mutant")["flag"].mean().to_dict()


def seen(results, look, needs="logits", batched=False):
    """Return what ``look`` finds in each case it is shown, in the order of judging."""
    found = []

    def spy(case):
        found.append(look(case))
        return [0.0] * len(case.step) if batched else 0.0

    assert judge(results, [detector(needs=needs, name="spy", batched=batched)(spy)]).warnings == ()
    return found
