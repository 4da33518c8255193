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

from mutkv.errors import UsageError
from mutkv.grid.completeness import Completeness
from mutkv.grid.store import CASES_FOLDER, OBSERVATIONS_FOLDER, check_version, part_names, read_json, read_part

RESULTS_FOLDER = Path("results")


@dataclass(frozen=True)
class Results:
    """One dataset folder. Rows that the plan does not ask for (of an older engine, say) are not read."""

    folder: Path
    manifest: dict[str, Any]
    plan: dict[str, Any]

    @property
    def scenario(self) -> str:
        """The scenario's name."""
        return str(self.plan["scenario"])

    @cached_property
    def planned_keys(self) -> set[str]:
        """Content keys of all planned cases."""
        return {case[3] for group in self.plan["groups"] for case in group["cases"]}

    @cached_property
    def _parts(self) -> tuple[dict[str, tuple[pa.Table, pa.Table]], list[str]]:
        parts, unreadable = {}, []
        for name in part_names(self.folder):
            tables = [read_part(self.folder, kind, name) for kind in (CASES_FOLDER, OBSERVATIONS_FOLDER)]
            if tables[0] is None or tables[1] is None:
                unreadable.append(name)
            else:
                parts[name] = (tables[0], tables[1])
        return parts, unreadable

    @property
    def unreadable(self) -> list[str]:
        """Names of parts that are truncated or damaged; their cases count as missing."""
        return self._parts[1]

    @cached_property
    def cases(self) -> pd.DataFrame:
        """One row per recorded case of the plan, in part order; ``part`` and ``first`` locate its observations."""
        frames = []
        for name, (cases, observations) in self._parts[0].items():
            frame = cases.to_pandas()
            ids = observations["case_id"].to_numpy()
            starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]]) if len(ids) else np.empty(0, int)
            located = pd.DataFrame({"first": starts, "observations": np.diff(np.r_[starts, len(ids)])}, ids[starts])
            frame = frame.join(located, on="case_id")
            frames.append(frame.assign(part=name)[frame["content_key"].isin(self.planned_keys)])
        if not frames:
            return pd.DataFrame(columns=["case_id", "outcome", "mutant"])
        frame = pd.concat(frames, ignore_index=True)
        return frame.astype({"first": "Int64", "observations": "Int64"})

    @property
    def completeness(self) -> Completeness:
        """Planned, done, failed and missing cases."""
        recorded = self.cases
        done = int((recorded["outcome"] == "ok").sum())
        planned = len(self.planned_keys)
        return Completeness(planned, done, len(recorded) - done, planned - len(recorded))

    @cached_property
    def observations(self) -> pd.DataFrame:
        """One row per observation, without the logits."""
        wanted = set(self.cases["case_id"])
        tables = [observations.drop(["logits_cached", "logits_full"]) for _, observations in self._parts[0].values()]
        if not tables:
            return pd.DataFrame(columns=["case_id"])
        frame = pa.concat_tables(tables).to_pandas()
        return frame[frame["case_id"].isin(wanted)].reset_index(drop=True)

    def columns(self, part: str, names: list[str]) -> dict[str, npt.NDArray[Any]]:
        """Return columns of one part's observations as arrays; logits are float64 ``[rows, vocab]``, read-only."""
        table = self._parts[0][part][1]
        return {name: as_array(table[name].combine_chunks()) for name in names}

    def missing(self) -> Iterator[str]:
        """Yield a name for each planned case without a result: scenario, mutant and seed."""
        recorded = set(self.cases["content_key"]) if len(self.cases) else set()
        for group in self.plan["groups"]:
            for seed, mutant, case_id, key in group["cases"]:
                if key not in recorded:
                    yield f"{mutant} seed {seed} ({case_id})"


def as_array(column: pa.Array) -> npt.NDArray[Any]:
    """Return a column as numpy, fixed-size lists as a matrix."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if pa.types.is_fixed_size_list(column.type):
        return column.flatten().to_numpy(zero_copy_only=False).reshape(-1, column.type.list_size)
    return column.to_numpy(zero_copy_only=False)


def load(path: str | Path | None = None) -> Results:
    """Open a results folder; without a path the latest one under ``results/``.

    Raises:
        UsageError: there are no results, or another dataset version wrote them.
    """
    folder = latest() if path is None else Path(path)
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such results folder: run 'mutkv grid run' first")
    check_version(folder)
    return Results(folder, read_json(folder / "manifest.json"), read_json(folder / "plan.json"))


def latest() -> Path:
    """Return the results folder whose manifest was written last."""
    manifests = sorted(RESULTS_FOLDER.glob("*/manifest.json"), key=lambda path: (path.stat().st_mtime, str(path)))
    if not manifests:
        raise UsageError(f"{RESULTS_FOLDER}: no results yet: run 'mutkv grid run' first")
    return manifests[-1].parent
