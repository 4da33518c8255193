"""Where the source of a package lies on disk, found by the import system so that checkouts and wheels work alike."""

import linecache
from importlib.machinery import ModuleSpec
from importlib.util import decode_source, find_spec
from pathlib import Path, PurePosixPath

from mutkv.errors import UsageError, unknown_name


def package_spec(package: str) -> ModuleSpec:
    """Return the import spec of a package, without running it (its parents are imported).

    Raises:
        UsageError: there is no such package, or it is a single module.
    """
    try:
        spec = find_spec(package)
    except ModuleNotFoundError:
        spec = None
    if spec is None:
        raise UsageError(f"no package '{package}': install it or check its name")
    if not spec.submodule_search_locations:
        raise UsageError(f"'{package}' is a single module: name the package (folder) that holds the patched file")
    return spec


def locate(package: str, file: str) -> Path:
    """Return the path of a source file, given relative to its package's folder.

    Raises:
        UsageError: no such file in the package.
    """
    folders = [Path(place) for place in package_spec(package).submodule_search_locations or ()]
    if ".." not in PurePosixPath(file).parts and file.endswith(".py"):
        for folder in folders:
            if (folder / file).is_file():
                return folder / file
    known = [path.relative_to(folder).as_posix() for folder in folders for path in folder.rglob("*.py")]
    raise unknown_name(f"file of package {package}", file, known)


def read_source(path: Path) -> str:
    """Return a Python file's text as the compiler sees it: declared encoding, line breaks as newlines."""
    return decode_source(path.read_bytes())


def module_name(package: str, file: str) -> str:
    """Return the dotted name of the module that a package's file defines."""
    parts = PurePosixPath(file).with_suffix("").parts
    return ".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts)))


def remember_source(filename: str, source: str) -> None:
    """Let tracebacks show the lines of a source that is on no disk."""
    # Without a size and time the entry stays when linecache drops those of files that have changed.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
