"""The KV cache that grows: per layer, the keys and values of every token fed so far, in position order.

Tensors are replaced, never changed in place, so that a saved state and a session that goes on can share them.
"""

from typing import Any, Protocol, Self

import torch
from torch import Tensor

from mutkv.configuration import ModelConfig
from mutkv.kernels import DTYPES


class Cache(Protocol):
    """Rows of keys and values per layer; index 0 of the first dimension holds keys, index 1 values."""

    def read(self, layer: int) -> Tensor:
        """Return a layer's rows, ``[2, R, B, length, kv_heads, head_dim]``."""

    def append(self, layer: int, new: Tensor) -> None:
        """Store rows ``[2, R, B, n, kv_heads, head_dim]`` behind those that are there."""

    def oldest(self, layer: int) -> int:
        """Return the first position that is still held; ``read`` gives anything finite before it."""

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` positions."""

    def drop_front(self, count: int) -> None:
        """Forget the first ``count`` columns, which no row uses; the others move to the front."""

    def select(self, rows: Tensor) -> None:
        """Let row b of each replica go on from row ``rows[r, b]``; ``[R, B']``."""

    def fork(self) -> Self:
        """Return a cache of the same content that goes on by itself."""

    def save(self) -> Any:
        """Return the state as plain data that later calls do not change."""

    def load(self, state: Any) -> None:
        """Continue from a state that ``save`` returned."""


class GrowingCache:
    """See ``Cache``."""

    def __init__(self, config: ModelConfig, replicas: int, batch: int) -> None:
        shape = (2, replicas, batch, 0, config.kv_heads, config.head_dim)
        empty = torch.empty(shape, dtype=DTYPES[config.arithmetic.storage], device=config.device)
        self.rows = [empty] * config.depth  # per layer [2, R, B, length, kv_heads, head_dim]

    def read(self, layer: int) -> Tensor:
        """Return a layer's rows, ``[2, R, B, length, kv_heads, head_dim]``."""
        return self.rows[layer]

    def append(self, layer: int, new: Tensor) -> None:
        """Store rows ``[2, R, B, n, kv_heads, head_dim]`` behind those that are there."""
        self.rows[layer] = torch.cat([self.rows[layer], new], dim=3)  # [2, R, B, length + n, kv_heads, head_dim]

    def oldest(self, layer: int) -> int:
        """Return 0: everything is held."""
        return 0

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` positions."""
        self.rows = [rows[:, :, :, :length] for rows in self.rows]  # each [2, R, B, length, kv_heads, head_dim]

    def drop_front(self, count: int) -> None:
        """Forget the first ``count`` columns."""
        self.rows = [rows[:, :, :, count:] for rows in self.rows]  # each [2, R, B, length - count, kv_heads, head_dim]

    def select(self, rows: Tensor) -> None:
        """Let row b of each replica go on from row ``rows[r, b]``; ``[R, B']``."""
        replica = torch.arange(len(rows), device=rows.device)[:, None]
        self.rows = [stored[:, replica, rows] for stored in self.rows]  # each [2, R, B', length, kv_heads, head_dim]

    def fork(self) -> "GrowingCache":
        """Return a cache of the same rows."""
        other = object.__new__(GrowingCache)
        other.load(self.save())
        return other

    def save(self) -> list[Tensor]:
        """Return the rows, which later calls replace and do not change."""
        return list(self.rows)

    def load(self, state: list[Tensor]) -> None:
        """Continue from rows that ``save`` returned."""
        self.rows = list(state)
