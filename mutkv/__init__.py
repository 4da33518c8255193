"""mutkv: mutation testing for checkers of KV caches. It tells you what your cache check cannot see.

The Python API is small: ``load`` opens results, ``score`` scores detectors on them, ``detector`` makes a checker of a
function, ``inject`` gives an engine with a mutant. Names are imported when they are first used, so that the command
line answers quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mutkv.api import inject, load, score
    from mutkv.detectors.detector import detector

__version__ = "0.2.0"
__all__ = ["detector", "inject", "load", "score"]

HOMES = {"detector": "mutkv.detectors.detector", "inject": "mutkv.api", "load": "mutkv.api", "score": "mutkv.api"}


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name not in HOMES:
        raise AttributeError(f"module 'mutkv' has no attribute '{name}'")
    return getattr(import_module(HOMES[name]), name)
