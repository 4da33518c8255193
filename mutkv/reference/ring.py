"""The ring buffer of a sliding window: position p lies in slot p mod W, where p − W lay before.

Only what the window can still reach is kept. ``read`` puts rows back at their positions, so that sums over keys run
in the order of positions and not of slots; positions that were let go hold poison, which the window's mask hides.
"""

from typing import Any

import torch
from torch import Tensor

from mutkv.configuration import ModelConfig
from mutkv.errors import Unsupported
from mutkv.reference.poison import poisoned
from mutkv.reference.static import StaticCache


class RingCache(StaticCache):
    """See ``mutkv.reference.cache.Cache``; buffers ``[2, R, B, W, kv_heads, head_dim]``."""

    def __init__(self, config: ModelConfig, replicas: int, batch: int) -> None:
        shape = (2, replicas, batch, config.window, config.kv_heads, config.head_dim)
        self.config, self.window = config, config.window
        self.buffers = [poisoned(shape, config, layer) for layer in range(config.depth)]
        self.lengths = [0] * config.depth  # positions written, per layer
        self.firsts = [0] * config.depth  # first position that is still held, per layer

    def read(self, layer: int) -> Tensor:
        """Return a layer's rows at their positions, ``[2, R, B, length, kv_heads, head_dim]``."""
        buffer, first, length = self.buffers[layer], self.firsts[layer], self.lengths[layer]
        slots = torch.arange(first, length) % self.window  # [held]
        lost = poisoned((*buffer.shape[:3], first, *buffer.shape[4:]), self.config, layer)
        return torch.cat([lost, buffer[:, :, :, slots]], dim=3)  # [2, R, B, length, kv_heads, head_dim]

    def append(self, layer: int, new: Tensor) -> None:
        """Store the last W of rows ``[2, R, B, n, kv_heads, head_dim]``, over the oldest ones."""
        end = self.lengths[layer] + new.shape[3]
        kept = min(new.shape[3], self.window)
        slots = torch.arange(end - kept, end) % self.window  # [kept]
        self.buffers[layer][:, :, :, slots] = new[:, :, :, new.shape[3] - kept :]  # [2, R, B, kept, kv_heads, head_dim]
        self.lengths[layer] = end
        self.firsts[layer] = max(self.firsts[layer], end - self.window)

    def oldest(self, layer: int) -> int:
        """Return the first position that was not overwritten."""
        return self.firsts[layer]

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` positions.

        Raises:
            Unsupported: the next token would see positions that were overwritten by those that are forgotten.
        """
        needed = max(length - self.window + 1, 0)
        if length and max(self.firsts) > needed:
            raise Unsupported(f"a ring of {self.window} that went on cannot go back to {length} tokens")
        super().crop(length)
        self.firsts = [min(first, length) for first in self.firsts]

    def drop_front(self, count: int) -> None:
        """Not in a ring."""
        raise Unsupported("a ring buffer has no left padding")

    def save(self) -> dict[str, Any]:
        """Return a copy of buffers, lengths and first positions."""
        return {**super().save(), "firsts": list(self.firsts)}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from a state that ``save`` returned."""
        super().load(state)
        self.firsts = list(state["firsts"])
