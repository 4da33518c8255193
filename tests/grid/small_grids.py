"""Small scenario and mutant files, their runs, and datasets as comparable data."""

from pathlib import Path

import numpy as np

from mutkv.grid import grid
from mutkv.grid.plan import make_plan
from mutkv.grid.results import load
from mutkv.grid.scenario import find_scenario
from mutkv.mutation.registry import load_mutants

EIGHT = ("evict", "freeze", "posfrozen", "posoff", "poszero", "prerot", "stale", "tril")
AXES = """
seed = [0, 1]
depth = [1, 2]
head_dim = 4
vocab = 8
prompt_length = 3
steps = 8
"""
MUTANT = """
id = "{name}"
class = "position"
summary = "made by a test"
origin = "synthetic"
path = "cached"
acts = "always"
workloads = ["decode"]
first_visible = "step 1"
witness = {{}}
[patch.reference]
file = "{file}"
line = '''{line}'''
becomes = '''{becomes}'''
"""


def scenario_of(folder, axes=AXES, mutants=EIGHT, benign=("clean", "control"), rest=""):
    """Write a scenario file and read it back."""
    path = Path(folder) / "small.toml"
    header = f'name = "small"\nsummary = "made by a test"\nmutants = {list(mutants)}\nbenign = {list(benign)}\n'
    path.write_text(f"{header}[axes]\n{axes}\n{rest}")
    return find_scenario(str(path))


def mutant_of(folder, name, file, line, becomes):
    """Write a mutant file and read it back."""
    path = Path(folder) / f"{name}.toml"
    path.write_text(MUTANT.format(name=name, file=file, line=line, becomes=becomes))
    [mutant] = [m for m in load_mutants([Path(folder)]).values() if m.id == name]
    return mutant


def plan_of(scenario, mutants=None, device="cpu"):
    """Plan a scenario with its shipped mutants, or with these."""
    shipped = load_mutants()
    return make_plan(scenario, mutants or {name: shipped[name] for name in scenario.mutants}, device)


def execute(plan, folder, jobs=1, groups=None):
    """Run a plan, or stop after some groups; return what was finished."""
    run = grid.prepare(plan, folder, jobs)
    finished = []
    with grid.executor_for(jobs) as executor:
        steps = run.execute(executor)
        for done in steps:
            finished.append(done)
            if len(finished) == groups:
                steps.close()
    return finished


def run_plan(plan, folder, jobs=1):
    """Run a plan to its end and load the results."""
    execute(plan, folder, jobs)
    return load(folder)


def part_bytes(folder):
    """Return the content of all parts by relative name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(Path(folder).glob("*/*.parquet"))}


def logits_of(results):
    """Return per case id its rows of cached and full logits, ``[N, vocab]`` each, and the other columns."""
    frame = results.observations
    found = {}
    for part, ids in results.cases.groupby("part")["case_id"]:
        columns = results.columns(part, ["case_id", "logits_cached", "logits_full"])
        for case_id in ids:
            rows = columns["case_id"] == case_id
            found[case_id] = (columns["logits_cached"][rows], columns["logits_full"][rows])
    assert sum(len(cached) for cached, _ in found.values()) == len(frame)
    return found


def sorted_rows(results):
    """Return cases and observations (with logits) as frames in an order that parts do not decide."""
    cases = results.cases.drop(columns=["part", "first"]).sort_values("case_id").reset_index(drop=True)
    keys = ["case_id", "request", "row", "step"]
    observations = results.observations.sort_values(keys).reset_index(drop=True)
    logits = logits_of(results)
    return cases, observations, np.concatenate([np.stack(logits[case_id]) for case_id in sorted(logits)], axis=1)


def assert_same_rows(left, right):
    """Fail unless two results hold the same rows, logits bit for bit."""
    (cases, observations, logits), other = sorted_rows(left), sorted_rows(right)
    assert cases.equals(other[0])
    assert observations.equals(other[1])
    assert logits.tobytes() == other[2].tobytes()
