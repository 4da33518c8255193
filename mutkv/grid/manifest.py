"""The manifest of a run: which program, machine and command made a dataset. Nothing in it decides a result."""

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import mutkv
from mutkv.configuration import digest
from mutkv.errors import UsageError
from mutkv.grid.columns import DATASET_VERSION
from mutkv.grid.plan import Plan

PACKAGES = ("mutkv", "torch", "numpy", "numba", "pandas", "pyarrow", "scipy", "scikit-learn")


def make_manifest(plan: Plan, jobs: int) -> dict[str, Any]:
    """Return the manifest as JSON data."""
    return {
        "dataset_version": DATASET_VERSION,
        "scenario": plan.scenario.name,
        "cases": len(plan.cases),
        "scenario_digest": digest(plan.scenario.model_dump(mode="json")),
        "mutant_set_digest": digest({name: mutant.patch_text for name, mutant in plan.mutants.items()}),
        "commit": commit(),
        "device": plan.device,
        "device_name": device_name(plan.device),
        "jobs": jobs,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": {package: installed(package) for package in PACKAGES},
        "argv": sys.argv,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def installed(package: str) -> str | None:
    """Return an installed package's version."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def commit() -> str | None:
    """Return the commit of the checkout that mutkv runs from, or None outside one."""
    root = Path(mutkv.__file__).parent.parent
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def device_name(device: str) -> str:
    """Return the name of the processor that a run uses, with the number of cores of a CPU."""
    if device != "cpu":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def resolve_device(name: str) -> str:
    """Return the torch device for ``cpu``, ``cuda`` or ``auto``; UsageError where there is none."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise UsageError("device 'cuda': torch sees no CUDA device here: use --device cpu or auto")
    return name
