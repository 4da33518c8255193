"""The digest of everything that decides an engine's output, so that a changed engine is not taken for a done one."""

import hashlib
from functools import lru_cache
from pathlib import Path

import torch

import mutkv

PACKAGES = ("kernels", "reference", "weights", "workloads", "studies")
MODULES = (
    "configuration.py",
    "protocol.py",
    *(f"grid/{name}.py" for name in ("attempt", "clean", "measure", "records", "run")),
)


@lru_cache
def engine_digest() -> str:
    """Return a hash of the engine's source files, its shipped weights and torch's version."""
    found = hashlib.sha256(torch.__version__.encode())
    root = Path(mutkv.__file__).parent
    paths = [root / name for name in MODULES]
    for package in PACKAGES:
        paths += sorted(p for p in (root / package).rglob("*") if p.suffix in (".py", ".safetensors"))
    for path in paths:
        found.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return found.hexdigest()[:20]
