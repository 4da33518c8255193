"""What must hold on a CUDA device, in under four minutes: exactness, the detector table, throughput. One JSON line.

    python -m benchmarks.gpu_check [--device cuda] [--json FILE]

Without a GPU it says so and exits 0. `--device cpu` runs the same checks on the CPU, to test the script itself.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import mutkv
from benchmarks.throughput import SCENARIO
from mutkv.grid.grid import executor_for, prepare
from mutkv.grid.manifest import device_name
from mutkv.grid.plan import make_plan, select_mutants
from mutkv.grid.results import Results
from mutkv.grid.scenario import find_scenario
from mutkv.mutation.registry import load_mutants
from mutkv.report.summary import summary

DETECTORS = ["every-step", "one-step"]


def run_scenario(name: str, device: str, folder: Path) -> tuple[Results, float]:
    """Run a scenario into a folder; return results and seconds, planning included."""
    shipped = load_mutants()
    start = time.perf_counter()
    scenario = find_scenario(name)
    run = prepare(make_plan(scenario, select_mutants(scenario, shipped, shipped), device), folder / scenario.name, 1)
    list(run.execute(executor_for(1)))
    if device == "cuda":
        torch.cuda.synchronize()
    return mutkv.load(folder / scenario.name), time.perf_counter() - start


def exactness(name: str, device: str, folder: Path) -> dict[str, Any]:
    """Return runs and the worst deviation per format and order."""
    results, seconds = run_scenario(name, device, folder)
    [table] = summary(results).values()
    rows = table.to_dict(orient="records")
    return {"runs": len(results.cases), "seconds": round(seconds, 1), "rows": rows}


def check(device: str) -> dict[str, Any]:
    """Run all checks and return their figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found: dict[str, Any] = {"device": device_name(device), "torch": torch.__version__}
        found |= {grid: exactness(grid, device, folder) for grid in ("exactness", "exactness-rope")}
        detectors, seconds = run_scenario("detectors", device, folder)
        score = mutkv.score(detectors, DETECTORS)
        found["detectors"] = {
            "seconds": round(seconds, 1),
            "table": summary(detectors)["mutants"].to_dict(orient="records"),
        }
        found["recall"] = {each.name: each.recall.value for each in score.detectors}
        found["clean flagged"] = {each.name: each.fpr["clean"].value for each in score.detectors}
        results, seconds = run_scenario(str(SCENARIO), device, folder)
        found["cases_per_second"] = round(len(results.cases) / seconds)
        return found


def main() -> None:
    """Check the device and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("no CUDA device here: nothing checked")
        return
    line = json.dumps(check(options.device))
    print(line)
    if options.json:
        options.json.write_text(line + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
