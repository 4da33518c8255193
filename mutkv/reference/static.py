"""The preallocated KV cache: one buffer per layer for a fixed number of positions, filled from the front.

What was not written yet holds poison, finite and large, as a buffer that is used again would: zeros would hide a read
beyond the end.
"""

from copy import copy
from typing import Any, Self

import torch
from torch import Tensor

from mutkv.configuration import ModelConfig
from mutkv.errors import UsageError
from mutkv.reference.poison import poisoned


class StaticCache:
    """See ``mutkv.reference.cache.Cache``."""

    def __init__(self, config: ModelConfig, replicas: int, batch: int) -> None:
        shape = (2, replicas, batch, config.capacity, config.kv_heads, config.head_dim)
        self.buffers = [poisoned(shape, config, layer) for layer in range(config.depth)]
        self.lengths = [0] * config.depth  # positions written, per layer

    def read(self, layer: int) -> Tensor:
        """Return a layer's rows, ``[2, R, B, length, kv_heads, head_dim]``."""
        return self.buffers[layer][:, :, :, : self.lengths[layer]]

    def append(self, layer: int, new: Tensor) -> None:
        """Store rows ``[2, R, B, n, kv_heads, head_dim]`` behind those that are there.

        Raises:
            UsageError: there is no room for them.
        """
        capacity = self.buffers[layer].shape[3]
        start, end = self.lengths[layer], self.lengths[layer] + new.shape[3]
        if end > capacity:
            raise UsageError(f"a cache of capacity {capacity} cannot hold {end} tokens: use a larger one")
        self.buffers[layer][:, :, :, start:end] = new  # [2, R, B, n, kv_heads, head_dim]
        self.lengths[layer] = end

    def oldest(self, layer: int) -> int:
        """Return 0: everything is held."""
        return 0

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` positions; what stands behind them is overwritten later."""
        self.lengths = [min(length, written) for written in self.lengths]

    def drop_front(self, count: int) -> None:
        """Move everything ``count`` columns to the front."""
        self.buffers = [buffer.roll(-count, dims=3) for buffer in self.buffers]  # [2, R, B, capacity, ...]
        self.lengths = [max(written - count, 0) for written in self.lengths]

    def select(self, rows: Tensor) -> None:
        """Let row b of each replica go on from row ``rows[r, b]``; ``[R, B']``."""
        replica = torch.arange(len(rows), device=rows.device)[:, None]
        self.buffers = [buffer[:, replica, rows] for buffer in self.buffers]  # [2, R, B', capacity, kv_heads, head_dim]

    def fork(self) -> Self:
        """Return a cache with a copy of the buffers."""
        other = copy(self)
        other.load(self.save())
        return other

    def save(self) -> dict[str, Any]:
        """Return a copy: the buffers are written in place."""
        return {"buffers": [buffer.clone() for buffer in self.buffers], "lengths": list(self.lengths)}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from a state that ``save`` returned, which may be loaded again."""
        self.buffers = [buffer.clone() for buffer in state["buffers"]]
        self.lengths = list(state["lengths"])
