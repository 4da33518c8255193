"""The view of a case that a detector gets: the two paths of the engine under test, and nothing about the truth.

A view is row numbers into a part's columns. Tensors are made when they are asked for and are the detector's own, so a
detector may write into them; labels, the clean run and the mutant's name are in none of them.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mutkv.configuration import Configuration
from mutkv.detectors.detector import Needs

Column = Callable[[str], npt.NDArray[Any]]
"""Returns a column of a part's observations, ``[rows]``; logits ``[rows, vocab]``."""
Wanted = int | Tensor | Collection[int] | None

COLUMNS = ("request", "row", "step", "position", "emitted", "forced_token")
SHOWN = {
    "text": ("tokens",),
    "logprobs": ("tokens", "logprobs"),
    "logits": ("tokens", "logprobs", "logits"),
    "kv": ("tokens", "logprobs", "logits", "keys", "values"),
    "hidden": ("tokens", "logprobs", "logits", "hidden"),
}
"""What either path shows, by what a detector needs."""


@dataclass(frozen=True, slots=True)
class Inside:
    """What a re-executed path held for one (request, row), one float64 tensor per layer."""

    keys: tuple[Tensor, ...] = ()
    """Stored keys (of the full path: those it computed), ``[n, kv_heads, head_dim]``, in position order."""
    values: tuple[Tensor, ...] = ()
    hidden: tuple[Tensor, ...] = ()
    """Residual stream after each layer, ``[n, width]``."""


class PathView:
    """One path of a case, at its N observations; with a leading dimension C for a batched detector."""

    def __init__(self, column: Column, rows: npt.NDArray[np.int64], path: str, needs: Needs, inside: Inside) -> None:
        self._column, self._rows, self._path, self._needs, self._inside = column, rows, path, needs, inside

    @property
    def tokens(self) -> Tensor:
        """The argmax, ties to the lowest, int64 ``[N]``."""
        self._allow("tokens")
        return read(self._column, f"argmax_{self._path}", self._rows)

    @property
    def logprobs(self) -> Tensor:
        """Log-softmax of the logits, float64 ``[N, V]``."""
        self._allow("logprobs")
        return torch.log_softmax(read(self._column, f"logits_{self._path}", self._rows), dim=-1)

    @property
    def logits(self) -> Tensor:
        """Float64 ``[N, V]``."""
        self._allow("logits")
        return read(self._column, f"logits_{self._path}", self._rows)

    @property
    def keys(self) -> tuple[Tensor, ...]:
        """Per layer the keys of this (request, row), float64 ``[n, kv_heads, head_dim]``."""
        self._allow("keys")
        return self._inside.keys

    @property
    def values(self) -> tuple[Tensor, ...]:
        """Per layer the values of this (request, row), float64 ``[n, kv_heads, head_dim]``."""
        self._allow("values")
        return self._inside.values

    @property
    def hidden(self) -> tuple[Tensor, ...]:
        """Per layer the residual stream of this (request, row), float64 ``[n, width]``."""
        self._allow("hidden")
        return self._inside.hidden

    def _allow(self, what: str) -> None:
        if what not in SHOWN[self._needs]:
            fix = next(needs for needs, shown in SHOWN.items() if what in shown)
            raise AttributeError(f"a detector with needs='{self._needs}' sees no {what}: declare needs='{fix}'")


class Case:
    """One case (or, for a batched detector, C cases of one layout) as a detector sees it.

    Observations are ordered by (request, row, step). For a batched detector every tensor has a leading dimension C.
    """

    def __init__(
        self,
        column: Column,
        rows: npt.NDArray[np.int64],
        config: Configuration,
        needs: Needs,
        inside: tuple[Inside, Inside] = (Inside(), Inside()),
    ) -> None:
        """Make a view.

        Args:
            column: The part's columns.
            rows: Row numbers of the observations, ``[N]``, or ``[C, N]`` for C cases of one layout.
            config: The case's configuration; that of the group (seed 0) for several cases.
            needs: What the detector is shown.
            inside: What the cached and the full path held, where they were run again.
        """
        self._column, self._rows, self._needs, self._inside = column, rows, needs, inside
        self.config = config
        self.cached = PathView(column, rows, "cached", needs, inside[0])
        self.full = PathView(column, rows, "full", needs, inside[1])

    @property
    def request(self) -> Tensor:
        """Index of the request, int64 ``[N]``."""
        return read(self._column, "request", self._rows)

    @property
    def row(self) -> Tensor:
        """Row of the batch, int64 ``[N]``."""
        return read(self._column, "row", self._rows)

    @property
    def step(self) -> Tensor:
        """Tokens fed after the prefill, int64 ``[N]``."""
        return read(self._column, "step", self._rows)

    @property
    def position(self) -> Tensor:
        """0-based place of the token that was fed, int64 ``[N]``."""
        return read(self._column, "position", self._rows)

    @property
    def emitted(self) -> Tensor:
        """Whether the observation's token would be sampled, bool ``[N]``."""
        return read(self._column, "emitted", self._rows)

    @property
    def forced_token(self) -> Tensor:
        """The token that was fed, int64 ``[N]``."""
        return read(self._column, "forced_token", self._rows)

    def at(
        self,
        *,
        request: Wanted = None,
        row: Wanted = None,
        step: Wanted = None,
        position: Wanted = None,
        emitted: bool | None = None,
    ) -> "Case":
        """Return a view restricted to these observations: ``at(step=1)``, ``at(step=range(8), row=0)``."""
        wanted = {"request": request, "row": row, "step": step, "position": position, "emitted": emitted}
        keep = np.ones(self._rows.shape[-1], np.bool_)
        for name, value in wanted.items():
            if value is not None:
                values = np.asarray(value if isinstance(value, int | Tensor) else list(value))
                keep &= np.isin(self._layout(name), values) if values.ndim else self._layout(name) == values
        return self._kept(keep)

    def last(self) -> "Case":
        """Return a view restricted to the last observation of each (request, row)."""
        request, row = self._layout("request"), self._layout("row")
        ends = np.ones(len(row), np.bool_)
        ends[:-1] = (request[1:] != request[:-1]) | (row[1:] != row[:-1])
        return self._kept(ends)

    def sequences(self) -> list["Case"]:
        """Return one view per (request, row), in order."""
        pairs = dict.fromkeys(zip(self._layout("request").tolist(), self._layout("row").tolist(), strict=True))
        return [self.at(request=request, row=row) for request, row in pairs]

    def _layout(self, name: str) -> npt.NDArray[Any]:
        first = self._rows if self._rows.ndim == 1 else self._rows[0]  # cases of a batch share one layout
        return np.asarray(self._column(name)[first])

    def _kept(self, keep: npt.NDArray[np.bool_]) -> "Case":
        return Case(self._column, self._rows[..., keep], self.config, self._needs, self._inside)


def read(column: Column, name: str, rows: npt.NDArray[np.int64]) -> Tensor:
    """Return rows of a column as a tensor of its own: an index array copies, also out of a read-only file."""
    return torch.from_numpy(column(name)[rows])
