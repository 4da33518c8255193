"""Finding detectors: the shipped ten, those of other packages, and functions in a user's file."""

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from mutkv.detectors.argmax import argmax_every_step, argmax_one_step
from mutkv.detectors.detector import Detector, detector, kebab
from mutkv.detectors.deviation import allclose, every_step, last_step, one_step, prefill
from mutkv.detectors.stored import kv_compare
from mutkv.detectors.text import logprob_8, text_8
from mutkv.errors import UsageError, one_line, unknown_name

ENTRY_POINTS = "mutkv.detectors"
SHIPPED = (
    prefill,
    one_step,
    every_step,
    last_step,
    argmax_one_step,
    argmax_every_step,
    allclose,
    text_8,
    logprob_8,
    kv_compare,
)


def shipped_detectors() -> tuple[Detector, ...]:
    """Return the detectors that come with mutkv."""
    return SHIPPED


def default_detectors() -> tuple[Detector, ...]:
    """Return what is judged when nobody names a detector: all shipped offline ones."""
    return tuple(shipped for shipped in SHIPPED if shipped.offline)


def load_detectors() -> dict[str, Detector]:
    """Return all registered detectors by name: shipped ones, then those of other packages.

    Raises:
        UsageError: an entry point cannot be loaded or is no detector, or two share a name.
    """
    found = {shipped.name: shipped for shipped in SHIPPED}
    for entry in entry_points(group=ENTRY_POINTS):
        theirs = registered(entry)
        if found.setdefault(theirs.name, theirs) != theirs:
            raise UsageError(f"{place_of(entry)}: there is a detector '{theirs.name}' already: give it another name")
    return found


def find_detector(spec: str) -> Detector:
    """Return a detector by its name, or as ``file.py:function``.

    Raises:
        UsageError: there is no such detector, file or function; or the file cannot be loaded.
    """
    path, colon, name = spec.rpartition(":")
    if colon and path.endswith(".py"):
        return from_file(Path(path), name)
    if spec.endswith(".py"):
        raise UsageError(f"detector '{spec}': names no function: write {spec}:FUNCTION")
    known = load_detectors()
    if spec not in known:
        raise unknown_name("detector", spec, known)
    return known[spec]


def from_file(path: Path, name: str) -> Detector:
    """Return a detector, or a plain function as one (needs logits, threshold 0), from a user's file."""
    module = load_file(path)
    if not hasattr(module, name):
        raise unknown_name(f"function of {path}", name, offered(module))
    return as_detector(getattr(module, name), f"{path}:{name}", name)


def as_detector(value: Any, place: str, name: str) -> Detector:
    """Return a detector as it is, and anything callable as one that needs logits."""
    if isinstance(value, Detector):
        return value
    if not callable(value) or inspect.isclass(value):
        kind = "a class" if inspect.isclass(value) else f"of type {type(value).__name__}"
        raise UsageError(f"{place}: is {kind}, not a detector: name a function that takes a case")
    return detector(name=kebab(getattr(value, "__name__", name)))(value)


def offered(module: ModuleType) -> list[str]:
    """Return the names of a file's detectors and of the functions that it defines."""
    members = vars(module).items()
    return [
        name
        for name, value in members
        if isinstance(value, Detector) or (inspect.isfunction(value) and value.__module__ == module.__name__)
    ]


def load_file(path: Path) -> ModuleType:
    """Run a user's file as a module; its own folder is importable meanwhile, as for a script.

    Raises:
        UsageError: there is no such file, or it raises.
    """
    if not path.is_file():
        raise UsageError(f"{path}: no such file: check the path")
    name = f"mutkv_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec, "a .py file always has a spec"
    assert spec.loader, "a .py file always has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a module up by its name
    try:
        with importable(path.resolve().parent):
            spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise UsageError(f"{path}: {failure_line(error, path)}") from error
    return module


def failure_line(error: BaseException, path: Path) -> str:
    """Return in one phrase why a file could not be run: its own usage error, or what it raised where."""
    text = " ".join(str(error).split())
    if isinstance(error, UsageError):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    line = error.lineno if isinstance(error, SyntaxError) else next(reversed(lines), None)
    return f"raises {type(error).__name__} at line {line} when it is run ({text}): mend it"


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Let imports find the modules of a folder."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def registered(entry: EntryPoint) -> Detector:
    """Return the detector that another package registered."""
    try:
        value = entry.load()
    except Exception as error:
        detail = one_line(error)
        raise UsageError(f"{place_of(entry)} cannot be loaded ({detail}): mend or uninstall its package") from error
    return as_detector(value, place_of(entry), entry.name)


def place_of(entry: EntryPoint) -> str:
    """Return where an entry point is, for messages."""
    return f"entry point '{entry.name}' of {ENTRY_POINTS} ({entry.value})"
