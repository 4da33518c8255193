"""The paged KV cache: each row's positions lie in blocks of a shared pool, found through the row's block table."""

import weakref
from typing import Any

import torch
from torch import Tensor

from mutkv.errors import ReplicasDisagree, Unsupported
from mutkv.reference.blocks import BlockPool


class PagedCache:
    """See ``mutkv.reference.cache.Cache``."""

    def __init__(self, pool: BlockPool, depth: int, batch: int) -> None:
        self.pool = pool
        self.tables: list[list[int]] = [[] for _ in range(batch)]  # per row, its blocks in position order
        self.lengths = [0] * depth  # positions written, per layer
        weakref.finalize(self, release_all, pool, self.tables)

    def read(self, layer: int) -> Tensor:
        """Return a layer's rows, ``[2, R, B, length, kv_heads, head_dim]``."""
        used = blocks_for(self.lengths[layer], self.pool.block)
        table = torch.tensor([row[:used] for row in self.tables], dtype=torch.int64)  # [B, used]
        rows = self.pool.buffers[layer][:, :, table]  # [2, R, B, used, block, kv_heads, head_dim]
        return rows.flatten(3, 4)[:, :, :, : self.lengths[layer]]

    def append(self, layer: int, new: Tensor) -> None:
        """Store rows ``[2, R, B, n, kv_heads, head_dim]`` behind those that are there."""
        start, end = self.lengths[layer], self.lengths[layer] + new.shape[3]
        for row in self.tables:
            self.reserve(row, start, end)
        positions = torch.arange(start, end)  # [n]
        table = torch.tensor(self.tables, dtype=torch.int64)  # [B, blocks]
        blocks = table[:, positions // self.pool.block]  # [B, n]
        self.pool.buffers[layer][:, :, blocks, positions % self.pool.block] = new  # [2, R, B, n, kv_heads, head_dim]
        self.lengths[layer] = end

    def reserve(self, row: list[int], start: int, end: int) -> None:
        """Give a row blocks of its own for positions start … end − 1."""
        for index in range(start // self.pool.block, blocks_for(end, self.pool.block)):
            if index < len(row):
                row[index] = self.pool.owned(row[index])  # another request may still read it
            else:
                row.append(self.pool.allocate())

    def adopt(self, tables: list[list[int]]) -> None:
        """Begin with full blocks that hold this row's first positions already, and hold them as well."""
        for row, found in zip(self.tables, tables, strict=True):
            row.extend(self.pool.acquire(block) for block in found)
        self.lengths = [len(tables[0]) * self.pool.block] * len(self.lengths)

    def oldest(self, layer: int) -> int:
        """Return 0: everything is held."""
        return 0

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` positions, and let go of the blocks behind them."""
        for row in self.tables:
            while len(row) > blocks_for(length, self.pool.block):
                self.pool.release(row.pop())
        self.lengths = [min(length, written) for written in self.lengths]

    def drop_front(self, count: int) -> None:
        """Not in blocks."""
        raise Unsupported("a paged cache has no left padding")

    def select(self, rows: Tensor) -> None:
        """Let row b go on from row ``rows[r, b]``, the same in all replicas; ``[R, B']``.

        Raises:
            ReplicasDisagree: the replicas have different parents, and so would need different tables.
        """
        if (rows != rows[0]).any():
            raise ReplicasDisagree("replicas with different parents cannot share one block table")
        before = [list(row) for row in self.tables]
        self.tables[:] = [[self.pool.acquire(block) for block in before[parent]] for parent in rows[0].tolist()]
        release_all(self.pool, before)

    def fork(self) -> "PagedCache":
        """Return a cache of the same blocks; whoever writes first into a shared one gets a copy."""
        other = PagedCache(self.pool, len(self.lengths), len(self.tables))
        for row, own in zip(other.tables, self.tables, strict=True):
            row.extend(self.pool.acquire(block) for block in own)
        other.lengths = list(self.lengths)
        return other

    def save(self) -> dict[str, Any]:
        """Return a copy of the rows: the blocks are written in place."""
        return {"rows": [self.read(layer).clone() for layer in range(len(self.lengths))]}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from a state that ``save`` returned, in blocks of its own."""
        self.crop(0)
        self.tables[:] = [[] for _ in range(state["rows"][0].shape[2])]
        for layer, rows in enumerate(state["rows"]):
            self.append(layer, rows)


def blocks_for(length: int, block: int) -> int:
    """Return how many blocks hold this many positions."""
    return -(-length // block)


def release_all(pool: BlockPool, tables: list[list[int]]) -> None:
    """Let go of every block of these tables."""
    for row in tables:
        for block in row:
            pool.release(block)
