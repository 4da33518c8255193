"""How long one probe takes on the two-layer model of ``length-profile``: the source says half a second.

    OMP_NUM_THREADS=1 python -m benchmarks.probe [--repeats 5]

A probe is one seed, a prompt of 8 tokens and 2 steps: the clean engine, and each of the eight mutants against it.
Mutants are imported and kernels compiled before; nothing is written to disk.
"""

import argparse
import statistics
import time

from mutkv.grid.manifest import device_name
from mutkv.grid.plan import Group, make_plan, select_mutants
from mutkv.grid.run import run_group
from mutkv.grid.scenario import Axes, Scenario, find_scenario
from mutkv.mutation.mutant import Mutant
from mutkv.mutation.registry import load_mutants

MODEL = {"depth": 2, "heads": 1, "head_dim": 64, "vocab": 32, "storage": "float32", "prefill_order": "native"}


def probe_group() -> tuple[Group, dict[str, Mutant]]:
    """Return the one group of the probe, and its mutants."""
    shipped = load_mutants()
    axes = Axes(**MODEL, prompt_length=8, steps=2)
    names = find_scenario("length-profile").mutants
    scenario = Scenario(name="probe", summary="one probe", mutants=names, benign=("clean",), axes=axes)
    mutants = select_mutants(scenario, shipped, shipped)
    return make_plan(scenario, mutants, "cpu").groups[0], mutants


def seconds(group: Group, mutants: dict[str, Mutant]) -> float:
    """Run the probe once."""
    start = time.perf_counter()
    for outcome in run_group(group, mutants, "cpu"):
        assert outcome.status == "ok", outcome.error
    return time.perf_counter() - start


def main() -> None:
    """Print the median and the extremes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    group, mutants = probe_group()
    seconds(group, mutants)  # imports the mutants
    found = sorted(seconds(group, mutants) for _ in range(repeats))
    print(f"{len(group.cases)} cases: {statistics.median(found):.3f} s ({found[0]:.3f} to {found[-1]:.3f})")
    print(device_name("cpu"))


if __name__ == "__main__":
    main()
