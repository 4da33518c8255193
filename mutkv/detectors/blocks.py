"""Cutting a dataset into blocks: cases of one part whose observations lie alike, so that they can be judged as one.

A part is one group of configurations, so a block's cases differ in seed and mutant alone.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mutkv.configuration import CONFIGURATION_COLUMNS, Configuration
from mutkv.detectors.case import COLUMNS, Case, Column, Inside
from mutkv.detectors.detector import Needs
from mutkv.grid.replay import configuration_of
from mutkv.grid.results import Results

IntArray = npt.NDArray[np.int64]

LAYOUT = ("request", "row", "step", "position", "emitted")
READABLE = ((*COLUMNS, "argmax_cached", "argmax_full"), ("logits_cached", "logits_full"))
"""All that a view can reach, whatever a detector tries, in sets read together: other columns hold the truth."""


@dataclass(frozen=True, slots=True)
class Block:
    """C cases of one part and one layout."""

    index: IntArray
    """Their places in the frame of judged cases, ``[C]``."""
    rows: IntArray
    """Their observations in the part's columns, ``[C, N]``."""
    column: Column
    group: Configuration
    seeds: tuple[int, ...]

    def batch(self, needs: Needs) -> Case:
        """Return the view of all cases at once."""
        return Case(self.column, self.rows, self.group, needs)

    def case(self, place: int, needs: Needs, inside: tuple[Inside, Inside] = (Inside(), Inside())) -> Case:
        """Return the view of one case."""
        return Case(self.column, self.rows[place], self.configuration(place), needs, inside)

    def configuration(self, place: int) -> Configuration:
        """Return the configuration of one case."""
        return replace(self.group, seed=self.seeds[place])

    def take(self, places: list[int]) -> "Block":
        """Return the block of some of the cases."""
        seeds = tuple(self.seeds[place] for place in places)
        return Block(self.index[places], self.rows[places], self.column, self.group, seeds)

    def sequences(self) -> list[tuple[int, int]]:
        """Return the (request, row) pairs of its cases, in order."""
        request, row = (self.column(name)[self.rows[0]].tolist() for name in ("request", "row"))
        return list(dict.fromkeys(zip(request, row, strict=True)))


def blocks(results: Results, cases: pd.DataFrame) -> Iterator[Block]:
    """Yield the blocks of some cases of a dataset, all of which have observations."""
    first, counts = (cases[name].to_numpy(np.int64) for name in ("first", "observations"))
    seeds = cases["seed"].to_numpy(np.int64)
    groups = groups_of(cases)
    for part, members in cases.groupby("part").indices.items():
        index = np.asarray(members, np.int64)
        column = reader(results, str(part))
        group = groups[str(part)]
        layout = np.stack([column(name) for name in LAYOUT])
        for alike_ones in alike(layout, first[index], counts[index]):
            chosen = index[alike_ones]
            rows = first[chosen][:, None] + np.arange(counts[chosen[0]])
            yield Block(chosen, rows, column, group, tuple(seeds[chosen].tolist()))


def groups_of(cases: pd.DataFrame) -> dict[str, Configuration]:
    """Return the group of each part."""
    heads = cases.drop_duplicates("part")
    rows = heads[list(CONFIGURATION_COLUMNS)].to_dict("records")
    return {part: configuration_of(row).group for part, row in zip(heads["part"], rows, strict=True)}


def reader(results: Results, part: str) -> Column:
    """Return what reads a part's columns, each once; the logits only if someone asks for them."""

    @cache
    def load(names: tuple[str, ...]) -> dict[str, npt.NDArray[Any]]:
        return results.columns(part, list(names))

    def column(name: str) -> npt.NDArray[Any]:
        for names in READABLE:
            if name in names:
                return load(names)[name]
        raise AttributeError(f"a detector does not see the column '{name}'")

    return column


def alike(layout: IntArray, first: IntArray, counts: IntArray) -> list[list[int]]:
    """Return the cases in sets of equal layout; ``layout`` is ``[columns, rows]`` of the whole part."""
    found: dict[bytes, list[int]] = defaultdict(list)
    for case, (start, count) in enumerate(zip(first.tolist(), counts.tolist(), strict=True)):
        found[layout[:, start : start + count].tobytes()].append(case)
    return list(found.values())
