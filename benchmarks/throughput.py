"""Cases per second, from plan to Parquet: one process, two processes and a naive per-case loop, in one run.

    OMP_NUM_THREADS=1 python -m benchmarks.throughput [--repeats 5] [--naive-seeds 1] [--json FILE]

Each repeat times all three, one after another, on empty folders, with workers started and kernels compiled before.
Reported are the median and the extremes. The naive loop runs fewer seeds; it has no per-seed overhead to share.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.naive import naive_case
from mutkv.grid.executors import Executor
from mutkv.grid.grid import Finished, Task, executor_for, prepare
from mutkv.grid.manifest import device_name
from mutkv.grid.plan import Plan, make_plan, select_mutants
from mutkv.grid.scenario import find_scenario
from mutkv.mutation.registry import load_mutants

SCENARIO = Path(__file__).with_name("throughput.toml")


def throughput_plan() -> Plan:
    """Return the plan of the speed scenario."""
    scenario = find_scenario(str(SCENARIO))
    shipped = load_mutants()
    return make_plan(scenario, select_mutants(scenario, shipped, shipped), "cpu")


def grouped(executor: Executor[Task, Finished], jobs: int) -> float:
    """Run the scenario into an empty folder; return cases per second, planning included."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        run = prepare(throughput_plan(), Path(folder), jobs)
        count = sum(sum(done.outcomes.values()) for done in run.execute(executor))
        return count / (time.perf_counter() - start)


def naive(seeds: int) -> float:
    """Run the first seeds of the scenario case by case; return cases per second, without writing."""
    plan = throughput_plan()
    cases = [case for case in plan.cases if case.configuration.seed < seeds]
    start = time.perf_counter()
    for case in cases:
        naive_case(case, plan.mutants.get(case.mutant))
    return len(cases) / (time.perf_counter() - start)


def figures(rates: list[float]) -> dict[str, float]:
    """Return median, minimum and maximum."""
    return {"median": statistics.median(rates), "min": min(rates), "max": max(rates)}


def measure(repeats: int, naive_seeds: int) -> dict[str, dict[str, float]]:
    """Time all forms, interleaved, after one warm-up of each."""
    with executor_for(1) as one, executor_for(2) as two:
        forms: dict[str, Callable[[], float]] = {
            "one process": lambda: grouped(one, 1),
            "two processes": lambda: grouped(two, 2),
            "naive loop": lambda: naive(naive_seeds),
        }
        for form in forms.values():
            form()
        rates = {name: [] for name in forms}
        for _ in range(repeats):
            for name, form in forms.items():
                rates[name].append(form())
    return {name: figures(values) for name, values in rates.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--naive-seeds", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    found = measure(options.repeats, options.naive_seeds)
    ratio = found["two processes"]["median"] / found["one process"]["median"]
    print(f"{device_name('cpu')}; {len(throughput_plan().cases)} cases, medians of {options.repeats}")
    for name, rate in found.items():
        print(f"{name:14} {rate['median']:8,.0f} cases/s   (min {rate['min']:,.0f}, max {rate['max']:,.0f})")
    print(f"two processes / one process: {ratio:.2f}")
    if options.json:
        document = {"machine": device_name("cpu"), "cases_per_second": found, "two_over_one": ratio}
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
