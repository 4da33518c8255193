"""What an engine is to mutkv: two paths through one model, and the traces that checkers may ask for.

The reference engine, adapters to real engines, a user's own engine and live checkers all speak this protocol.
Tokens are ``[R, B, T]`` int64: R replicas (own weights, same structure), B rows of a batch (same weights).
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from mutkv.configuration import ModelConfig

LayerRows = list[tuple[Tensor, Tensor]]
"""Per layer (keys, values), each ``[R, B, length, kv_heads, head_dim]`` in position order."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything one forward pass computed, for n positions; tuples hold one tensor per layer."""

    logits: Tensor
    """``[R, B, n, vocab]``"""
    hidden: tuple[Tensor, ...]
    """Residual stream after each layer, ``[R, B, n, width]``."""
    keys: tuple[Tensor, ...]
    """Keys as they are stored (rotated, unless rope rotates on read), ``[R, B, n, kv_heads, head_dim]``."""
    values: tuple[Tensor, ...]
    """``[R, B, n, kv_heads, head_dim]``"""
    attended: tuple[Tensor, ...]
    """Attention output before the output projection, ``[R, B, n, width]``."""


@runtime_checkable
class Session(Protocol):
    """The cached path: one batch of requests that grow together.

    A session may also have ``last``, the ``Trace`` of its last ``extend`` (or None). Where it is missing, attention
    outputs and hidden states of the cached path are not recorded.
    """

    @property
    def length(self) -> int:
        """Tokens that were fed so far."""

    @property
    def hit_tokens(self) -> int:
        """Tokens that were taken from a store instead of computed."""

    def extend(self, tokens: Tensor, pad: Tensor | None = None) -> Tensor:
        """Feed tokens ``[R, B, n]`` (prefill, chunk and decode alike); return logits ``[R, B, n, vocab]``."""

    def stored(self) -> LayerRows:
        """Return the cache's content, in position order."""

    def fork(self) -> "Session":
        """Return a session that continues from here on its own."""

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` tokens."""

    def reorder(self, parents: Tensor) -> None:
        """Let row b continue from row ``parents[b]``."""

    def keep(self, rows: Tensor) -> None:
        """Drop all rows but these."""

    def shift(self, count: int) -> None:
        """Drop the ``count`` oldest tokens and move the rest down."""

    def reset(self) -> None:
        """Forget everything."""

    def save(self) -> Any:
        """Return the state as plain data."""

    def load(self, state: Any) -> None:
        """Continue from a state that ``save`` returned."""


@runtime_checkable
class Engine(Protocol):
    """A decoder with a cached path (``open``) and a full path (``full``: recompute from tokens, no cache)."""

    @property
    def config(self) -> ModelConfig:
        """Structure and arithmetic."""

    def full(self, tokens: Tensor, adapter: Any = None, media: Any = None) -> Tensor:
        """Return logits at every position, ``[R, B, T, vocab]``, computed without a cache."""

    def trace(self, tokens: Tensor, adapter: Any = None, media: Any = None) -> Trace:
        """Return everything the full path computed."""

    def open(self, batch: int = 1, adapter: Any = None, media: Any = None) -> Session:
        """Return a new session with an empty cache."""
