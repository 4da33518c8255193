"""One point of a grid, and the part of it an engine is built from: plain frozen data, hashed into ids.

The field names are the dataset's column names. These types live outside the packages that mutants copy, so that a
value made by the harness is the same type inside a mutated engine.
"""

import hashlib
import json
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from mutkv.kernels.arithmetic import Arithmetic, Format, Order

Positions = Literal["learned", "rope", "alibi"]
Rotation = Literal["write", "read"]
RopeScaling = Literal["none", "linear", "yarn"]
Weights = Literal["random", "near-tied", "trained"]

MINIMUM_CONTEXT = 64
DRAFTED = 3
"""Tokens that one round of a speculative decode feeds: the last one and two drafts."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The structure and arithmetic of a decoder.

    ``context`` is the number of positions it has tables for. ``window`` is how many positions a token attends to,
    itself included; 0 is all of them. ``capacity`` is how many positions a preallocated cache holds; 0 is a cache that
    grows. ``ring`` keeps only the window, in a ring buffer. ``block`` is the number of positions of a block of a paged
    cache, 0 for none, and ``pool`` the number of blocks that all requests share. ``sharing`` consecutive layers share
    one layer's keys and values. ``adapters`` and ``media`` are how many of each an engine knows.
    """

    depth: int = 1
    heads: int = 2
    kv_heads: int = 2
    head_dim: int = 8
    vocab: int = 32
    positions: Positions = "rope"
    rotation: Rotation = "write"
    rope_scaling: RopeScaling = "none"
    window: int = 0
    capacity: int = 0
    ring: bool = False
    block: int = 0
    pool: int = 64
    sharing: int = 1
    adapters: int = 0
    media: int = 0
    context: int = MINIMUM_CONTEXT
    arithmetic: Arithmetic = field(default_factory=Arithmetic)
    device: str = "cpu"

    @property
    def width(self) -> int:
        """Width of the residual stream."""
        return self.heads * self.head_dim


@dataclass(frozen=True, slots=True)
class Configuration:
    """One point of a grid: everything that decides a run except the mutant and the device."""

    workload: str = "decode"
    seed: int = 0
    depth: int = 1
    heads: int = 2
    kv_heads: int = 2
    head_dim: int = 8
    vocab: int = 32
    prompt_length: int = 4
    steps: int = 12
    batch: int = 1
    positions: Positions = "rope"
    rotation: Rotation = "write"
    rope_scaling: RopeScaling = "none"
    window: int = 0
    capacity: int = 0
    ring: bool = False
    block: int = 0
    pool: int = 64
    sharing: int = 1
    adapters: int = 0
    media: int = 0
    weights: Weights = "random"
    sharpness: float = 1.0
    storage: Format = "float64"
    accumulator: Format = "float64"
    prefill_order: Order = "sequential"
    decode_order: Order = "sequential"

    @property
    def arithmetic(self) -> Arithmetic:
        """Formats and orders of this point."""
        return Arithmetic(self.storage, self.accumulator, self.prefill_order, self.decode_order)

    @property
    def group(self) -> "Configuration":
        """The same point with seed 0: what all replicas share."""
        return replace(self, seed=0)

    @property
    def tokens(self) -> int:
        """Tokens of one row that were fed at the last step, prompt included, where nothing else happens."""
        return self.prompt_length + self.steps

    @property
    def reach(self) -> int:
        """An upper bound of the tokens that one row's cache holds at any time of the workload."""
        if self.workload == "decode":
            return self.tokens
        longest_prompt = max(self.prompt_length, 2 * self.window, self.block + 1)
        return 2 * longest_prompt + DRAFTED * self.steps

    def model(self, device: str = "cpu") -> ModelConfig:
        """Return what an engine is built from; its context covers the run (and one token of slack for mutants)."""
        context = max(MINIMUM_CONTEXT, 1 << self.reach.bit_length())
        structure = {name: getattr(self, name) for name in STRUCTURE_COLUMNS}
        return ModelConfig(**structure, context=context, arithmetic=self.arithmetic, device=device)

    def columns(self) -> dict[str, Any]:
        """Return the dataset columns of this point, in their order."""
        return {name: getattr(self, name) for name in CONFIGURATION_COLUMNS}

    def identity(self) -> str:
        """Return the configuration_id: a hash of the columns alone, equal on all machines.

        Columns that have their default are left out, so that a column added later changes no id.
        """
        return digest({name: value for name, value in self.columns().items() if value != getattr(DEFAULT, name)})


CONFIGURATION_COLUMNS: tuple[str, ...] = tuple(column.name for column in fields(Configuration))


STRUCTURE_COLUMNS = tuple(part.name for part in fields(ModelConfig) if part.name in CONFIGURATION_COLUMNS)


DEFAULT = Configuration()


def digest(value: Any) -> str:
    """Return a short hash of a JSON value, whatever the order of its keys."""
    return short_hash(json.dumps(value, sort_keys=True, separators=(",", ":")))


def short_hash(text: str) -> str:
    """Return a 20-digit SHA-256 prefix."""
    return hashlib.sha256(text.encode()).hexdigest()[:20]
