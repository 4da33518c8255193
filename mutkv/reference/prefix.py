"""The prefix store: finished prompts by the hashes of their blocks, so that a prompt that begins alike reuses them.

A block's key covers its own tokens and everything before them, through the key of the block before, and whatever else
decides its rows: adapter and medium. Only full blocks are stored.
"""

import hashlib
from collections import OrderedDict

from torch import Tensor

from mutkv.errors import ReplicasDisagree
from mutkv.reference.blocks import BlockPool

Keys = list[tuple[str, ...]]
"""Per full block of a row, one key per replica."""


class PrefixStore:
    """Blocks of a pool by key, the least recently used first; the store holds each of them once."""

    def __init__(self, pool: BlockPool) -> None:
        self.pool = pool
        self.known: OrderedDict[str, int] = OrderedDict()
        self.keys: dict[int, set[str]] = {}  # of each stored block
        pool.reclaim = self.evict

    def lookup(self, tokens: Tensor, adapter: int | None, media: int | None) -> list[list[int]]:
        """Return per row the blocks that hold the beginning of tokens ``[R, B, T]``, as many for every row.

        At least one token is left to feed: the store holds no logits.
        """
        usable = (tokens.shape[-1] - 1) // self.pool.block
        rows = [block_keys(row, self.pool.block, adapter, media)[:usable] for row in tokens.unbind(1)]
        tables = [self.longest(keys) for keys in rows]
        hits = min(map(len, tables))
        return [table[:hits] for table in tables]

    def longest(self, keys: Keys) -> list[int]:
        """Return the blocks of a row up to the first that is not stored."""
        table: list[int] = []
        for key in keys:
            found = {self.known.get(f"{replica}:{one}") for replica, one in enumerate(key)}
            if len(found) > 1:
                raise ReplicasDisagree("one replica finds a stored block and another does not")
            block = found.pop()
            if block is None:
                break
            table.append(block)
            for replica, one in enumerate(key):
                self.known.move_to_end(f"{replica}:{one}")
        return table

    def publish(self, tokens: Tensor, tables: list[list[int]], adapter: int | None, media: int | None) -> None:
        """Store the full blocks of rows with tokens ``[R, B, T]``."""
        for row, table in zip(tokens.unbind(1), tables, strict=True):
            for key, block in zip(block_keys(row, self.pool.block, adapter, media), table, strict=False):
                names = {f"{replica}:{one}" for replica, one in enumerate(key)}
                there = len(names & self.known.keys())
                if 0 < there < len(names):
                    raise ReplicasDisagree("one replica has stored a block and another has not")
                if not there:  # the first to come stays
                    self.known.update(dict.fromkeys(sorted(names), self.pool.acquire(block)))
                    self.keys[block] = names

    def evict(self) -> None:
        """Give up the least recently used block that nobody else holds."""
        for block in list(dict.fromkeys(self.known.values())):
            if self.pool.holders[block] == 1:
                self.forget(block)
                return

    def forget(self, block: int) -> None:
        """Drop a block and its keys."""
        for name in self.keys.pop(block):
            del self.known[name]
        self.pool.release(block)

    def clear(self) -> None:
        """Drop everything, as after a change of weights."""
        for block in list(self.keys):
            self.forget(block)


def block_keys(row: Tensor, block: int, adapter: int | None, media: int | None) -> Keys:
    """Return the chained keys of the full blocks of a row's tokens ``[R, T]``."""
    chains = []
    for tokens in row.tolist():
        parent, chain = "", []
        for start in range(0, len(tokens) - block + 1, block):
            parent = digest(parent, tokens[start : start + block], adapter, media)
            chain.append(parent)
        chains.append(chain)
    return list(zip(*chains, strict=True))


def digest(parent: str, tokens: list[int], adapter: int | None, media: int | None) -> str:
    """Return the key of a block behind the block with the parent's key."""
    return hashlib.sha256(f"{parent}/{adapter}/{media}/{tokens}".encode()).hexdigest()
