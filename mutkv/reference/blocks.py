"""The pool of blocks that all requests of a paged engine share: who holds which block, and which are free.

A block is a few consecutive positions of one row, in all layers. It may be held by several requests and by the prefix
store at once; it is free again when the last one lets go.
"""

from collections.abc import Callable

from torch import Tensor

from mutkv.configuration import ModelConfig
from mutkv.errors import UsageError
from mutkv.reference.poison import poisoned


class BlockPool:
    """Memory of ``pool`` blocks: per layer ``[2, R, pool, block, kv_heads, head_dim]``."""

    def __init__(self, config: ModelConfig, replicas: int) -> None:
        shape = (2, replicas, config.pool, config.block, config.kv_heads, config.head_dim)
        self.block = config.block
        self.buffers: list[Tensor] = [poisoned(shape, config, layer) for layer in range(config.depth)]
        self.free = list(range(config.pool))
        self.holders = [0] * config.pool  # how many hold each block
        self.reclaim: Callable[[], None] = lambda: None  # the prefix store gives up blocks that nobody else holds

    def allocate(self) -> int:
        """Return a free block, now held once.

        Raises:
            UsageError: every block is held.
        """
        if not self.free:
            self.reclaim()
        if not self.free:
            raise UsageError(f"a pool of {len(self.holders)} blocks is full: use a larger one")
        block = self.free.pop(0)
        self.holders[block] = 1
        return block

    def acquire(self, block: int) -> int:
        """Hold a block once more."""
        self.holders[block] += 1
        return block

    def release(self, block: int) -> None:
        """Let go of a block; the last holder frees it."""
        self.holders[block] -= 1
        if self.holders[block] == 0:
            self.free.append(block)

    def owned(self, block: int) -> int:
        """Return a block to write into: this one if nobody else holds it, otherwise a copy (copy on write)."""
        if self.holders[block] == 1:
            return block
        own = self.allocate()
        for buffer in self.buffers:
            buffer[:, :, own] = buffer[:, :, block]  # [2, R, block, kv_heads, head_dim]
        self.release(block)
        return own
