"""What a workload gives back: where it observed the engine, and what the cached path did there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mutkv.configuration import Configuration
from mutkv.protocol import Engine, LayerRows, Trace

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Layout:
    """The N observations of one case, ordered by (request, row, step); equal for all replicas and mutants."""

    request: Integers
    row: Integers
    step: Integers
    position: Integers
    emitted: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        """Return N."""
        return len(self.step)


@dataclass(frozen=True, slots=True)
class Recording:
    """What the cached path did along one script."""

    tokens: Tensor
    """Every token that was fed, ``[R, B, T]``."""
    logits: Tensor
    """At the observations, float64 ``[R, N, vocab]``."""
    traces: tuple[Trace, ...]
    """What each ``extend`` computed, in order."""
    stored: LayerRows
    """The cache's content at the end."""
    snapshot: Any
    """The session's state after the prefill, or None when there was none."""
    prefilled: LayerRows
    """The cache's content after the prefill, empty when there was none."""

    def attended(self, layer: int) -> Tensor:
        """Return a layer's attention output over all calls, ``[R, B, T, width]``."""
        return torch.cat([trace.attended[layer] for trace in self.traces], dim=2)


class Workload(Protocol):
    """One script, for one configuration."""

    layout: Layout

    def __init__(self, configuration: Configuration) -> None:
        """Prepare the script of this configuration."""

    def prompt(self, seeds: Sequence[int]) -> Tensor:
        """Return the given tokens of each seed, ``[R, B, given]``."""

    def greedy(self, engine: Engine, prompt: Tensor) -> Recording:
        """Run the cached path along its own greedy tokens: how the clean engine makes the forced tokens."""

    def forced(self, engine: Engine, tokens: Tensor, clean: Recording | None = None) -> Recording:
        """Run the cached path along these tokens; with ``clean``, from that recording's state after its prefill."""

    def forced_tokens(self, tokens: Tensor) -> Tensor:
        """Return the token fed to produce each observation, ``[R, N]``."""

    def full(self, engine: Engine, tokens: Tensor) -> Trace:
        """Run the full path over the final tokens: one pass, valid at every step for a causal engine."""

    def observed(self, logits: Tensor) -> Tensor:
        """Pick the observations from full logits ``[R, B, T, vocab]``, float64 ``[R, N, vocab]``."""

    def full_stepwise(self, engine: Engine, tokens: Tensor) -> Tensor:
        """Recompute from the tokens at every step; float64 ``[R, N, vocab]``."""
