"""Writing a dataset so that nothing recorded is ever lost or doubled.

One part per group: Parquet files of one name, written aside and renamed, the one with the cases last. A case is done
when its row is in a ``cases`` part; a part without its ``cases`` is the trace of a kill and is not read. Times go to a
file of their own, so that the parts of one plan have the same bytes on every run.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mutkv.grid.columns import CASES, MEASUREMENTS, observations_schema
from mutkv.grid.files import replacing, write_errors
from mutkv.grid.records import Records

CASES_FOLDER, OBSERVATIONS_FOLDER, MEASUREMENTS_FOLDER = FOLDERS = ("cases", "observations", "measurements")


def write_part(folder: Path, name: str, scenario: str, records: Sequence[Records], vocab: int) -> None:
    """Write one group's rows: observations, measurements if there are any, then cases."""
    observed = [part for part in records if part.observations]
    table = observations_table(observed, vocab)
    write_table(folder / OBSERVATIONS_FOLDER / f"{name}.parquet", table)
    if any(part.measurements for part in records):
        write_table(folder / MEASUREMENTS_FOLDER / f"{name}.parquet", measurements_table(records))
    write_table(folder / CASES_FOLDER / f"{name}.parquet", cases_table(records, scenario))


def write_table(path: Path, table: pa.Table) -> None:
    """Write a Parquet file in one step. Logits are noise to a compressor; text columns are what a dictionary is for."""
    text = [field.name for field in table.schema if field.type == pa.string()]
    with replacing(path) as temporary:
        pq.write_table(
            table, temporary, compression="none", use_dictionary=text, write_statistics=False, write_page_checksum=True
        )


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


def measurements_table(records: Sequence[Records]) -> pa.Table:
    """Return the rows of ``measurements``, case by case."""
    parts = [part.measurements for part in records if part.measurements]
    return pa.concat_tables([pa.table(columns, schema=MEASUREMENTS) for columns in parts])


def column_array(records: Sequence[Records], field: pa.Field) -> pa.Array:
    """Return one column of all records."""
    values = np.concatenate([part.observations[field.name] for part in records])
    if pa.types.is_fixed_size_list(field.type):
        return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), field.type.list_size)
    return pa.array(values, field.type)


def remove_part(folder: Path, name: str) -> None:
    """Remove a part that is about to be replaced by smaller ones; its cases first, so that no reader sees half."""
    for kind in FOLDERS:
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
        options = {"partitioning": None, "memory_map": True, "page_checksum_verification": True}
        return pq.read_table(path, columns=columns, **options) if path.is_file() else None
    except (OSError, pa.ArrowException):
        return None


def recorded_keys(folder: Path) -> tuple[set[str], list[str]]:
    """Return the content keys of all recorded cases, and the names of parts that are damaged; reads everything."""
    keys: set[str] = set()
    damaged = []
    for name in part_names(folder):
        cases = read_cases(folder, name)
        observations = read_part(folder, OBSERVATIONS_FOLDER, name)
        if cases is None or observations is None or not belongs(observations, cases):
            damaged.append(name)
        else:
            keys.update(cases["content_key"].to_pylist())
    return keys, damaged


def read_cases(folder: Path, name: str) -> pa.Table | None:
    """Return a part's cases, or None if they are damaged or what was recorded of them is not all there."""
    cases = read_part(folder, CASES_FOLDER, name)
    if cases is None or cases.schema != CASES:
        return None
    try:
        rows = pq.read_metadata(folder / OBSERVATIONS_FOLDER / f"{name}.parquet").num_rows
    except (OSError, pa.ArrowException):
        return None
    whole = rows == sum(cases["observations"].to_pylist()) and all_measured(folder, name, cases)
    return cases if whole else None


def all_measured(folder: Path, name: str, cases: pa.Table) -> bool:
    """Whether every case that ran to the end without an observation, as those of studies do, has measurements."""
    columns = (cases[column].to_pylist() for column in ("case_id", "outcome", "observations"))
    studied = {case for case, outcome, count in zip(*columns, strict=True) if outcome == "ok" and not count}
    if not studied:
        return True
    measurements = read_part(folder, MEASUREMENTS_FOLDER, name)
    if measurements is None or measurements.schema != MEASUREMENTS:
        return False
    found = Counter(measurements["case_id"].to_pylist())
    return len({found[case] for case in studied}) == 1 and studied <= found.keys()


def belongs(observations: pa.Table, cases: pa.Table) -> bool:
    """Whether the observations are those of the cases, in their order."""
    expected = np.repeat(cases["case_id"].to_pylist(), cases["observations"].to_pylist())
    return "case_id" in observations.column_names and observations["case_id"].to_pylist() == expected.tolist()


def set_aside(folder: Path, names: Iterable[str]) -> None:
    """Rename parts that cannot be read, so that their cases are run again and nothing is deleted."""
    for name in names:
        for kind in FOLDERS:
            path = folder / kind / f"{name}.parquet"
            if path.exists():
                with write_errors(path):
                    path.replace(path.with_suffix(".unreadable"))
