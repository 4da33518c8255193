"""Reading a dataset: the plan, what of it is recorded, and the frames that detectors and scores work on."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from mutkv.errors import IncompleteError, UsageError
from mutkv.grid.columns import CASES, MEASUREMENTS, observations_schema
from mutkv.grid.completeness import Completeness
from mutkv.grid.files import check_version, read_json
from mutkv.grid.store import MEASUREMENTS_FOLDER, OBSERVATIONS_FOLDER, part_names, read_cases, read_part

RESULTS_FOLDER = Path("results")


@dataclass(frozen=True, repr=False)
class Results:
    """One dataset folder. Rows that the plan does not ask for (of an older engine, say) are not read."""

    folder: Path
    manifest: dict[str, Any]
    plan: dict[str, Any]

    def __repr__(self) -> str:
        """Return the folder and how complete it is."""
        return f"<Results {self.folder}: {self.completeness}>"

    @property
    def scenario(self) -> str:
        """The scenario's name."""
        return str(self.plan["scenario"])

    @property
    def table(self) -> str:
        """The kind of table that sums this scenario up."""
        return str(self.plan["table"])

    @property
    def study(self) -> str | None:
        """The study that measured these cases, or None where they were observed."""
        return self.plan.get("study")

    @cached_property
    def planned_keys(self) -> dict[str, int]:
        """Content keys of all planned cases, with their place in the plan."""
        keys = (case[3] for group in self.plan["groups"] for case in group["cases"])
        return {key: place for place, key in enumerate(keys)}

    @cached_property
    def _parts(self) -> tuple[dict[str, pa.Table], list[str]]:
        parts, unreadable = {}, []
        for name in part_names(self.folder):
            cases = read_cases(self.folder, name)
            if cases is None:
                unreadable.append(name)
            else:
                parts[name] = cases
        return parts, unreadable

    @property
    def unreadable(self) -> list[str]:
        """Names of parts that are truncated or damaged; their cases count as missing."""
        return self._parts[1]

    @cached_property
    def cases(self) -> pd.DataFrame:
        """One row per recorded case, in the plan's order; ``part`` and ``first`` locate its observations."""
        parts = self._parts[0]
        frame: pd.DataFrame = pa.concat_tables(parts.values()).to_pandas() if parts else CASES.empty_table().to_pandas()
        frame["part"] = np.repeat(list(parts), [len(table) for table in parts.values()])
        ends = frame.groupby("part")["observations"].cumsum()
        frame["first"] = ends - frame["observations"]
        place = frame["content_key"].map(self.planned_keys)
        planned = frame[place.notna()].iloc[place.dropna().argsort(kind="stable")]
        return planned.drop_duplicates("content_key").reset_index(drop=True)  # two runs at once may both have recorded

    @property
    def completeness(self) -> Completeness:
        """Planned, done, failed and missing cases."""
        recorded = self.cases
        done = int((recorded["outcome"] == "ok").sum())
        planned = len(self.planned_keys)
        return Completeness(planned, done, len(recorded) - done, planned - len(recorded))

    @cached_property
    def observations(self) -> pd.DataFrame:
        """One row per observation of the cases, without the logits, in the cases' order."""
        schema = pa.schema([field for field in observations_schema(1) if not field.name.startswith("logits")])
        cases = self.cases
        tables = {part: self._read(str(part), schema.names) for part in cases["part"].unique()}
        start = dict(zip(tables, np.cumsum([0, *map(len, tables.values())]), strict=False))
        count = cases["observations"].to_numpy(np.int64)
        first = cases["first"].to_numpy(np.int64) + cases["part"].map(start).to_numpy(np.int64)
        rows = np.repeat(first - count.cumsum() + count, count) + np.arange(count.sum())
        frame: pd.DataFrame = pa.concat_tables([schema.empty_table(), *tables.values()]).to_pandas()
        return frame.iloc[rows].reset_index(drop=True)

    @cached_property
    def measurements(self) -> pd.DataFrame:
        """One row per figure that a study measured, with the columns of its case, in the cases' order."""
        files = self.cases["part"].unique()
        tables = {file: read_part(self.folder, MEASUREMENTS_FOLDER, str(file)) for file in files}
        found = [table.to_pandas().assign(file=file) for file, table in tables.items() if table is not None]
        measured = pd.concat([MEASUREMENTS.empty_table().to_pandas().assign(file=""), *found])
        cases = self.cases.rename(columns={"part": "file"}).drop(columns="first").astype({"file": str})
        # By file as well: one that is read for some of its cases may hold others of an older mutant, of the same id.
        return cases.merge(measured, on=["file", "case_id"]).drop(columns="file")

    def columns(self, part: str, names: list[str]) -> dict[str, npt.NDArray[Any]]:
        """Return columns of one part's observations as arrays; logits are float64 ``[rows, vocab]``, read-only."""
        table = self._read(part, names)
        return {name: as_array(table[name]) for name in names}

    def _read(self, part: str, names: list[str]) -> pa.Table:
        table = read_part(self.folder, OBSERVATIONS_FOLDER, part, names)
        if table is None:
            raise IncompleteError(f"{self.folder}: observations of part {part} are damaged: run 'mutkv grid run' again")
        return table

    def missing(self) -> Iterator[str]:
        """Yield a name for each planned case without a result: scenario, mutant and seed."""
        recorded = set(self.cases["content_key"]) if len(self.cases) else set()
        for group in self.plan["groups"]:
            for seed, mutant, case_id, key in group["cases"]:
                if key not in recorded:
                    yield f"{mutant} seed {seed} ({case_id})"


def as_array(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return a column as numpy, fixed-size lists as a matrix."""
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    is_list = pa.types.is_fixed_size_list(array.type)
    values: npt.NDArray[Any] = (array.flatten() if is_list else array).to_numpy(zero_copy_only=False)
    return values.reshape(-1, array.type.list_size) if is_list else values


def load(path: str | Path | None = None) -> Results:
    """Open a results folder; without a path the latest one under ``results/``.

    Raises:
        UsageError: there are no results, or another dataset version wrote them.
    """
    folder = latest() if path is None else Path(path)
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such results folder: run 'mutkv grid run' first")
    check_version(folder)
    plan = read_json(folder / "plan.json", ["scenario", "table", "device", "engine_digest", "mutants", "groups"])
    return Results(folder, read_json(folder / "manifest.json", ["dataset_version"]), plan)


def latest() -> Path:
    """Return the results folder that was planned last."""
    plans = sorted(RESULTS_FOLDER.glob("*/plan.json"), key=lambda path: (path.stat().st_mtime, str(path)))
    if not plans:
        raise UsageError(f"{RESULTS_FOLDER}: no results yet: run 'mutkv grid run' first")
    return plans[-1].parent
