"""Finding mutants: the shipped corpus, folders named by the user, and folders registered by other packages."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from mutkv.errors import UsageError, one_line, unknown_name
from mutkv.mutation.mutant import Mutant
from mutkv.resources import shipped
from mutkv.schema import read_toml

ENTRY_POINTS = "mutkv.mutants"


def load_mutants(directories: Iterable[Path] = ()) -> dict[str, Mutant]:
    """Return all mutants by id, sorted: shipped ones, those of the directories, those of entry points.

    Raises:
        UsageError: a file is not a valid mutant, two files share an id, or a folder holds no TOML file.
    """
    mutants: dict[str, Mutant] = {}
    for mutant in _all(directories):
        other = mutants.setdefault(mutant.id, mutant)
        if other.source_path.resolve() != mutant.source_path.resolve():
            both = f"{other.source_path} and {mutant.source_path}"
            raise UsageError(f"mutant '{mutant.id}' is in both {both}: rename one")
    return dict(sorted(mutants.items()))


def find(mutants: Mapping[str, Mutant], name: str) -> Mutant:
    """Return a mutant by its id, or raise a UsageError with the nearest known ids."""
    if name not in mutants:
        raise unknown_name("mutant", name, mutants)
    return mutants[name]


PROPERTIES: dict[str, Callable[[Mutant], tuple[str, ...]]] = {
    "class": lambda mutant: (mutant.mutant_class,),
    "origin": lambda mutant: (mutant.origin,),
    "path": lambda mutant: (mutant.path,),
    "workload": lambda mutant: mutant.workloads,
    "visible": lambda mutant: (mutant.first_visible,),
    "equivalent": lambda mutant: (mutant.equivalent or "no",),
}
"""What mutants can be chosen by."""


def matching(mutants: Mapping[str, Mutant], wanted: Mapping[str, str]) -> dict[str, Mutant]:
    """Return the mutants that have all of these properties, by ``PROPERTIES``.

    Raises:
        UsageError: no mutant at all has such a value.
    """
    for name, value in wanted.items():
        known = {each for mutant in mutants.values() for each in PROPERTIES[name](mutant)}
        if value not in known:
            raise unknown_name(name, value, known)
    return {
        key: mutant
        for key, mutant in mutants.items()
        if all(value in PROPERTIES[name](mutant) for name, value in wanted.items())
    }


def is_shipped(mutant: Mutant) -> bool:
    """Whether a mutant is one of the corpus that comes with mutkv."""
    return mutant.source_path.is_relative_to(shipped("mutants"))


def load_shipped(folder: Path) -> list[Mutant]:
    """Return the mutants of a corpus laid out as ``<class>/<id>.toml``, each in its place."""
    mutants = [read_toml(path, Mutant) for path in sorted(folder.rglob("*.toml"))]
    for mutant in mutants:
        place = Path(mutant.mutant_class, f"{mutant.id}.toml")
        if mutant.source_path != folder / place:
            raise UsageError(f"{mutant.source_path}: by its class and id this file belongs at {place}: move it")
    return mutants


def _all(directories: Iterable[Path]) -> Iterator[Mutant]:
    """Yield the mutants of every source."""
    yield from load_shipped(shipped("mutants"))
    for directory in (*directories, *map(_registered, entry_points(group=ENTRY_POINTS))):
        paths = sorted(directory.rglob("*.toml"))
        if not paths:
            raise UsageError(f"{directory}: no mutant files (*.toml) in this folder: check the path")
        yield from (read_toml(path, Mutant) for path in paths)


def _registered(entry: EntryPoint) -> Path:
    """Return the folder that another package registered, as a path or a function that returns one."""
    place = f"entry point '{entry.name}' of {ENTRY_POINTS} ({entry.value})"
    try:
        found = entry.load()
        folder = found() if callable(found) else found
    except Exception as error:
        detail = one_line(error)
        raise UsageError(f"{place} cannot be loaded ({detail}): mend or uninstall its package") from error
    if not isinstance(folder, str | os.PathLike):
        raise UsageError(f"{place} gives a {type(folder).__name__}: it should be a folder's path or return one")
    return Path(folder)
