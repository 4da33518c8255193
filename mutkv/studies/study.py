"""What a study is: a measurement of an engine that is no comparison of cached and full logits at observations.

A study sees the engine under test through its constructor alone, so that the same code measures the clean engine and
a mutated copy. What it measures is a list of named figures per seed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mutkv.configuration import Configuration, ModelConfig
from mutkv.protocol import Engine

MakeEngine = Callable[[ModelConfig, dict[str, Tensor]], Engine]


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured: all seeds of one configuration at once, on one engine, clean or mutated."""

    configuration: Configuration
    seeds: tuple[int, ...]
    config: ModelConfig
    weights: dict[str, Tensor]
    """Tensors ``[R, ...]``, one replica per seed; shared, never to be changed in place."""
    make_engine: MakeEngine
    """Builds the engine under test from a structure and weights."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure per seed."""

    quantity: str
    """What was measured, in words: ``gradient cosine``."""
    part: str
    """Where in the model: ``layer 1``, a tensor's name, or ``all``."""
    values: Sequence[float]
    """Float64, in the order of the seeds, ``[R]``."""


@dataclass(frozen=True, slots=True)
class Study:
    """How something is measured, and which configurations have it."""

    measure: Callable[[Subject], Iterator[Measurement]]
    """Called with gradients switched off."""
    check: Callable[[Configuration], None] = lambda configuration: None
    """Raises UsageError, with the fix, for a configuration in which there is nothing to measure."""


def largest(left: Tensor, right: Tensor) -> list[float]:
    """Return per seed the largest absolute difference of two tensors ``[R, ...]``, in float64."""
    difference = (left.double() - right.double()).abs().flatten(1)
    worst: list[float] = (difference.amax(dim=1) if difference.shape[1] else torch.zeros(len(left))).tolist()
    return worst
