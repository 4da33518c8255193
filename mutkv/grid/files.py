"""Files of a dataset: written whole or not at all, read with a clear line, one run at a time."""

import errno
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mutkv.errors import IncompleteError, UsageError
from mutkv.grid.columns import DATASET_VERSION


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn a failed write into one line: a full disk loses nothing recorded, other failures are the user's to mend."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise IncompleteError(
                f"{path}: the disk is full; what was recorded is kept: free space, run again"
            ) from None
        raise UsageError(f"{path}: cannot be written ({error.strerror or error}): choose another --out") from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside ``path`` and rename it at the end, so that a reader never sees half a file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            temporary.replace(path)
    finally:
        with suppress(OSError):  # no folder, nothing to clean up
            temporary.unlink(missing_ok=True)


def write_json(path: Path, document: Any, indent: int | None = None) -> None:
    """Write a JSON file in one step."""
    text = json.dumps(document, indent=indent) + "\n"
    if has_text(path, text):
        with suppress(OSError):  # a complete folder may be read-only
            path.touch()
        return
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def has_text(path: Path, text: str) -> bool:
    """Whether a file holds just this text."""
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for one run; a second one at the same time is refused, it would compute the same cases."""
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)  # the folder itself: it may be complete and read-only
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UsageError(f"{folder}: another 'mutkv grid run' is at work here: wait, or use --out") from None
    finally:
        os.close(handle)


def read_json(path: Path, keys: Iterable[str]) -> dict[str, Any]:
    """Read a JSON file of a dataset; UsageError if it is not there, not JSON, or lacks one of the keys."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        kind = type(error).__name__
        raise UsageError(f"{path}: no mutkv results here ({kind}): run 'mutkv grid run' first") from None
    missing = [key for key in keys if not isinstance(document, dict) or key not in document]
    if missing:
        raise UsageError(f"{path}: not a file of mutkv (no '{missing[0]}'): run 'mutkv grid run' again")
    return dict(document)


def check_version(folder: Path) -> None:
    """Refuse a folder whose results another dataset version wrote; a manifest that cannot be read says nothing."""
    try:
        found = read_json(folder / "manifest.json", ["dataset_version"])["dataset_version"]
    except UsageError:
        return
    if found != DATASET_VERSION:
        fix = "use another --out or the mutkv that wrote it"
        raise UsageError(f"{folder}: results of dataset version {found}, this mutkv has {DATASET_VERSION}: {fix}")
