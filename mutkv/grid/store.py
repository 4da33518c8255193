"""Writing a dataset so that nothing recorded is ever lost or doubled.

One part per group: two Parquet files of one name, written aside and renamed, observations first. A case is done when
its row is in a ``cases`` part; an ``observations`` part without its ``cases`` part is the trace of a kill and is not
read. Times go to a file of their own, so that the parts of one plan have the same bytes on every run.
"""

import errno
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mutkv.errors import IncompleteError, UsageError
from mutkv.grid.columns import CASES, DATASET_VERSION, observations_schema
from mutkv.grid.records import Records

CASES_FOLDER, OBSERVATIONS_FOLDER = "cases", "observations"


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
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(document, indent=indent) + "\n", encoding="utf-8")


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
    """Refuse a folder whose results another dataset version wrote."""
    manifest = folder / "manifest.json"
    if not manifest.exists():
        return
    found = read_json(manifest, ["dataset_version"])["dataset_version"]
    if found != DATASET_VERSION:
        fix = "use another --out or the mutkv that wrote it"
        raise UsageError(f"{folder}: results of dataset version {found}, this mutkv has {DATASET_VERSION}: {fix}")


def write_part(folder: Path, name: str, scenario: str, records: Sequence[Records], vocab: int) -> None:
    """Write one group's rows: observations, then cases."""
    observed = [part for part in records if part.observations]
    table = observations_table(observed, vocab)
    write_table(folder / OBSERVATIONS_FOLDER / f"{name}.parquet", table)
    write_table(folder / CASES_FOLDER / f"{name}.parquet", cases_table(records, scenario))


def write_table(path: Path, table: pa.Table) -> None:
    """Write a Parquet file in one step. Logits are noise to a compressor; text columns are what a dictionary is for."""
    text = [field.name for field in table.schema if field.type == pa.string()]
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="none", use_dictionary=text, write_statistics=False)


def cases_table(records: Sequence[Records], scenario: str) -> pa.Table:
    """Return the rows of ``cases`` in the order in which they were run."""
    columns = {name: [value for part in records for value in part.cases[name]] for name in records[0].cases}
    columns["scenario"] = [scenario] * len(columns["case_id"])
    return pa.table({name: pa.array(columns[name], CASES.field(name).type) for name in CASES.names}, schema=CASES)


def observations_table(records: Sequence[Records], vocab: int) -> pa.Table:
    """Return the rows of ``observations``, case by case."""
    schema = observations_schema(vocab)
    if not records:
        return schema.empty_table()
    columns = [column_array(records, field) for field in schema if field.name != "case_id"]
    repeats = [len(part.observations["step"]) // len(part.cases["case_id"]) for part in records]
    names = [np.repeat(part.cases["case_id"], count) for part, count in zip(records, repeats, strict=True)]
    return pa.table([pa.array(np.concatenate(names), pa.string()), *columns], schema=schema)


def column_array(records: Sequence[Records], field: pa.Field) -> pa.Array:
    """Return one column of all records."""
    values = np.concatenate([part.observations[field.name] for part in records])
    if pa.types.is_fixed_size_list(field.type):
        return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), field.type.list_size)
    return pa.array(values, field.type)


def remove_part(folder: Path, name: str) -> None:
    """Remove a part that is about to be replaced by smaller ones; its cases first, so that no reader sees half."""
    for kind in (CASES_FOLDER, OBSERVATIONS_FOLDER):
        path = folder / kind / f"{name}.parquet"
        with write_errors(path):
            path.unlink(missing_ok=True)


def part_names(folder: Path) -> list[str]:
    """Return the names of the parts that were finished, in order."""
    return sorted(path.stem for path in (folder / CASES_FOLDER).glob("*.parquet"))


def read_part(folder: Path, kind: str, name: str, columns: Sequence[str] | None = None) -> pa.Table | None:
    """Return one file of a part, or None if it cannot be read."""
    path = folder / kind / f"{name}.parquet"
    try:
        return pq.read_table(path, columns=columns, partitioning=None, memory_map=True)
    except (OSError, pa.ArrowException):
        return None


def recorded_keys(folder: Path) -> tuple[set[str], list[str]]:
    """Return the content keys of all recorded cases, and the names of parts that cannot be read."""
    keys: set[str] = set()
    unreadable = []
    for name in part_names(folder):
        cases = read_part(folder, CASES_FOLDER, name, ["content_key"])
        if cases is None or not is_complete(folder / OBSERVATIONS_FOLDER / f"{name}.parquet"):
            unreadable.append(name)
        else:
            keys.update(cases["content_key"].to_pylist())
    return keys, unreadable


def is_complete(path: Path) -> bool:
    """Whether a Parquet file is there down to its footer."""
    try:
        pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return False
    return True


def set_aside(folder: Path, names: Iterable[str]) -> None:
    """Rename parts that cannot be read, so that their cases are run again and nothing is deleted."""
    for name in names:
        for kind in (CASES_FOLDER, OBSERVATIONS_FOLDER):
            path = folder / kind / f"{name}.parquet"
            if path.exists():
                with write_errors(path):
                    path.replace(path.with_suffix(".unreadable"))
