"""A session, the cached path: rows of a batch that grow together, and what a server may do to them.

A session counts columns. Without left pads a column is a position; a padded row's first token stands ``pad`` columns
later.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mutkv.errors import Unsupported, UsageError
from mutkv.protocol import LayerRows, Trace
from mutkv.reference.cache import Cache
from mutkv.reference.paged import PagedCache
from mutkv.reference.step import Step

if TYPE_CHECKING:
    from mutkv.reference.engine import Engine


class Session:
    """See ``mutkv.protocol.Session``."""

    def __init__(self, engine: "Engine", cache: Cache, adapter: int | None, media: int | None) -> None:
        self.engine, self.cache, self.adapter, self.media = engine, cache, adapter, media
        self.length = 0
        self.prompt_length = 0  # length after the first extend
        self.hit_tokens = 0
        self.pad: Tensor | None = None  # columns of each row before its first token, [B]
        self.last: Trace | None = None  # what the last extend computed

    def extend(self, tokens: Tensor, pad: Tensor | None = None) -> Tensor:
        """Feed tokens ``[R, B, n]`` over the cache; return their logits ``[R, B, n, vocab]``."""
        if pad is not None:
            self._begin_padded(pad)
        kernel = self.engine.decode_kernel if self.length else self.engine.prefill_kernel
        start = self.length
        step = Step(kernel, start, self.cache, self.pad, self.adapter, self.media)
        self.last = self.engine.decoder.forward(tokens, step)
        self.length += tokens.shape[-1]
        self.prompt_length = self.prompt_length or self.length
        return self.last.logits

    def _begin_padded(self, pad: Tensor) -> None:
        if self.length:
            raise UsageError(f"pads come with the first tokens: this session holds {self.length}")
        if self.engine.config.ring or self.engine.config.block:
            raise Unsupported("a ring buffer and a paged cache have no left padding: use a cache that grows")
        self.pad = pad if pad.any() else None

    def share(self, tables: list[list[int]]) -> None:
        """Begin with stored blocks, one table per row, instead of computing what they hold."""
        assert isinstance(self.cache, PagedCache)
        self.cache.adopt(tables)
        self.length = self.hit_tokens = len(tables[0]) * self.engine.config.block

    def stored(self) -> LayerRows:
        """Return per layer (keys, values), each ``[R, B, length, kv_heads, head_dim]``, in position order.

        Where a row holds nothing, as beyond the end of a padded row or before a window, there is NaN.
        """
        config = self.engine.config
        sources = [layer - layer % config.sharing for layer in range(config.depth)]
        return [self._rows(layer) for layer in sources]

    def _rows(self, layer: int) -> tuple[Tensor, Tensor]:
        rows = self.cache.read(layer).clone()  # a copy: a preallocated cache is written in place
        rows[:, :, :, : self.cache.oldest(layer)] = torch.nan
        for row, pad in enumerate([] if self.pad is None else self.pad.tolist()):
            rows[:, :, row] = rows[:, :, row].roll(-pad, dims=2)  # [2, R, length, kv_heads, head_dim]
            rows[:, :, row, rows.shape[3] - pad :] = torch.nan
        return rows[0], rows[1]

    def save(self) -> dict[str, Any]:
        """Return the state as plain data, which the session leaves as it is when it goes on."""
        return {
            "length": self.length,
            "prompt_length": self.prompt_length,
            "pad": self.pad,
            "cache": self.cache.save(),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue from a state that ``save`` returned."""
        self.length, self.prompt_length, self.pad = state["length"], state["prompt_length"], state["pad"]
        self.cache.load(state["cache"])

    def fork(self) -> "Session":
        """Return a session that continues from here on its own."""
        other = Session(self.engine, self.cache.fork(), self.adapter, self.media)
        other.length, other.prompt_length, other.pad = self.length, self.prompt_length, self.pad
        return other

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` tokens, as after rejected drafts."""
        if not 0 <= length <= self.length:
            raise UsageError(f"cannot crop to {length} tokens: the session holds {self.length}")
        self.cache.crop(length)
        self.length, self.prompt_length = length, min(self.prompt_length, length)

    def reorder(self, parents: Tensor) -> None:
        """Let row b continue from row ``parents[b]``; ``[B]``, or ``[R, B]`` where replicas differ."""
        parents = parents.expand(self.engine.replicas, -1)
        self.cache.select(parents)
        if self.pad is not None:
            if (parents != parents[0]).any():
                raise Unsupported("padded rows cannot have other parents in each replica")
            self.pad = self.pad[parents[0]]

    def keep(self, rows: Tensor) -> None:
        """Drop all rows but these; ``[B']``, or ``[R, B']`` where replicas differ."""
        self.reorder(rows)
        if self.pad is not None:
            spare = int(self.pad.min())  # columns that are now pads in every row
            self.pad, self.length = self.pad - spare, self.length - spare
            self.cache.drop_front(spare)

    def reset(self) -> None:
        """Forget everything, for another request."""
        self.crop(0)
        self.pad, self.hit_tokens = None, 0

    def shift(self, count: int) -> None:
        """Not in this configuration."""
        raise Unsupported("the reference engine cannot shift in this configuration")
