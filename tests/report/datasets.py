"""Small datasets of every kind of table, and their rows read by pyarrow alone, as plain dicts."""

import pyarrow.parquet as pq

from mutkv.grid import grid
from mutkv.grid.plan import make_plan
from mutkv.grid.results import load
from mutkv.grid.scenario import Axes, Scenario
from mutkv.mutation.registry import load_mutants

SMALL = {"head_dim": 4, "vocab": 8, "prompt_length": 3, "steps": 3, "seed": [0, 1]}
FORMATS = {"storage": ["float64", "float32"], "prefill_order": ["sequential", "native"]}
KINDS = {
    "mutants": (("stale", "posfrozen"), ("clean", "control"), {"depth": [1, 2]}),
    "exactness": ((), ("clean",), FORMATS),
    "attention": ((), ("clean",), FORMATS),
    "profile": (("tril", "posoff"), ("clean",), {"prompt_length": [2, 5], "sharpness": [1.0, 2.0], "seed": [0, 1, 2]}),
}


def make_dataset(folder, table):
    """Run a small scenario of one kind into a folder and load it."""
    mutants, benign, axes = KINDS[table]
    scenario = Scenario(
        name="small", summary="made by a test", table=table, mutants=mutants, benign=benign, axes=Axes(**SMALL | axes)
    )
    run = grid.prepare(make_plan(scenario, {name: load_mutants()[name] for name in mutants}, "cpu"), folder, 1)
    with grid.executor_for(1) as executor:
        list(run.execute(executor))
    return load(folder)


def recorded(results):
    """Return every case's row with its observations' rows under the key ``rows``, straight from the files."""
    found = []
    for path in sorted((results.folder / "cases").glob("*.parquet")):
        rows = pq.read_table(results.folder / "observations" / path.name, partitioning=None).to_pylist()
        for case in pq.read_table(path, partitioning=None).to_pylist():
            found.append({**case, "rows": [row for row in rows if row["case_id"] == case["case_id"]]})
    return found


def deviation(row):
    """Return max|cached - full| of one observation, from its logits."""
    return max(abs(a - b) for a, b in zip(row["logits_cached"], row["logits_full"], strict=True))


def chosen(logits):
    """Return the lowest index of the largest logit."""
    return logits.index(max(logits))


def worst(cases, step=None):
    """Return the largest deviation of cases, at one step or at all of them."""
    return max(deviation(row) for case in cases for row in case["rows"] if step is None or row["step"] == step)


def changed(case, cases):
    """Whether a case's cached path chooses another token than the clean case of its configuration."""
    same = [other for other in cases if other["configuration_id"] == case["configuration_id"]]
    [clean] = [other for other in same if other["mutant"] == "clean"]
    pairs = zip(case["rows"], clean["rows"], strict=True)
    return any(chosen(row["logits_cached"]) != chosen(right["logits_cached"]) for row, right in pairs)
