"""What a workload gives back: where it observed the engine, what the cached path did there, and which tokens it means.

The cached path is compared with a recompute of the tokens that a row holds. Rows are rolled back, reordered and padded,
so a recording names the tokens of every observation: a conversation, a row of it and a position.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mutkv.protocol import LayerRows, Trace

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Layout:
    """The N observations of one case, ordered by (request, row, step); equal for all replicas and mutants."""

    request: Integers
    row: Integers
    step: Integers
    position: Integers
    emitted: npt.NDArray[np.bool_]
    order: Integers
    """The call that made each observation, counted over the whole script."""

    def __len__(self) -> int:
        """Return N."""
        return len(self.step)


@dataclass(slots=True)
class Conversation:
    """Rows of equal length, without pads, that are recomputed together: the full path's input."""

    tokens: Tensor
    """``[R, b, T]``; grows while the rows go on."""
    adapter: int | None = None
    media: int | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """What the cache held of some rows when they ended: rows ``rows`` of a request, in a conversation's order."""

    request: int
    rows: tuple[int, ...]
    conversation: Conversation
    stored: LayerRows


@dataclass(frozen=True, slots=True)
class Observed:
    """The logits of one call for one conversation: n positions of b rows."""

    request: int
    rows: tuple[int, ...]
    first_step: int
    order: int
    conversation: Conversation
    position: int
    emitted: tuple[bool, ...]
    logits: Tensor
    """``[R, b, n, vocab]``"""


@dataclass(frozen=True)
class Recording:
    """What the cached path did along one script."""

    observed: tuple[Observed, ...]
    decisions: tuple[Tensor, ...]
    """What was decided by the engine's own logits, in order: tokens, parents of beams."""
    traces: tuple[Trace, ...]
    """What each call computed last, in order."""
    held: tuple[Held, ...]
    snapshot: Any
    """The session's state after the first prefill, or None when there was none."""
    prefilled: LayerRows
    """The cache's content after the first prefill, empty when there was none."""
    answer: Tensor | None = None
    """The best beam's tokens ``[R, T]`` at the end, where a workload searches."""

    @cached_property
    def conversations(self) -> tuple[Conversation, ...]:
        """Every conversation that was observed or held, in order."""
        parts: tuple[Observed | Held, ...] = (*self.observed, *self.held)
        return tuple({id(part.conversation): part.conversation for part in parts}.values())

    def place(self, conversation: Conversation) -> int:
        """Return the index of a conversation."""
        return next(index for index, other in enumerate(self.conversations) if other is conversation)

    @cached_property
    def columns(self) -> Integers:
        """Return request, row, step, position, emitted, order, conversation, row in it: ``[8, N]``, by calls."""
        found = []
        for part in self.observed:
            place = self.place(part.conversation)
            for inside, row in enumerate(part.rows):
                for index, emitted in enumerate(part.emitted):
                    step, position = part.first_step + index, part.position + index
                    own = (part.request, row, step, position, emitted, part.order, place, inside)
                    found.append(own)
        return np.array(found, dtype=np.int64).reshape(-1, 8).T

    @cached_property
    def sorting(self) -> Integers:
        """Return the places, in script order, of the observations ordered by (request, row, step)."""
        request, row, step = self.columns[:3]
        return np.lexsort((step, row, request))

    @cached_property
    def layout(self) -> Layout:
        """Return where the observations lie."""
        request, row, step, position, emitted, order, _, _ = self.columns[:, self.sorting]
        return Layout(request, row, step, position, emitted.astype(np.bool_), order)

    @cached_property
    def logits(self) -> Tensor:
        """Return the logits at the observations, float64 ``[R, N, vocab]``."""
        flat = torch.cat([part.logits.flatten(1, 2) for part in self.observed], dim=1)
        return flat.double()[:, torch.from_numpy(self.sorting)]

    @cached_property
    def forced_tokens(self) -> Tensor:
        """Return the token fed to produce each observation, ``[R, N]``."""
        position, place, row = self.columns[[3, 6, 7]][:, self.sorting].tolist()
        tokens = [self.conversations[c].tokens[:, r, p] for c, r, p in zip(place, row, position, strict=True)]
        return torch.stack(tokens, dim=1)

    @property
    def stored(self) -> LayerRows:
        """Return what the cache held at the end, for a script of one request."""
        [held] = self.held
        return held.stored

    def attended(self, layer: int) -> Tensor:
        """Return a layer's attention output over all calls of a script of one request, ``[R, B, T, width]``."""
        return torch.cat([trace.attended[layer] for trace in self.traces], dim=2)
