"""The reference engine: the full path (no cache) and sessions, the cached path, over one decoder."""

from typing import Any

import torch
from torch import Tensor

from mutkv.configuration import ModelConfig
from mutkv.errors import Unsupported, UsageError
from mutkv.kernels import kernel_for
from mutkv.protocol import LayerRows, Trace
from mutkv.reference.cache import Cache, GrowingCache
from mutkv.reference.model import Decoder
from mutkv.reference.static import StaticCache


class Engine:
    """A decoder with R replicas of weights; see ``mutkv.protocol.Engine``."""

    def __init__(self, config: ModelConfig, weights: dict[str, Tensor]) -> None:
        self.config = config
        self.decoder = Decoder(config, weights)
        self.replicas = weights["embedding"].shape[0]
        self.prefill_kernel = kernel_for(config.arithmetic, config.arithmetic.prefill_order)
        self.decode_kernel = kernel_for(config.arithmetic, config.arithmetic.decode_order)

    def full(self, tokens: Tensor, adapter: Any = None, media: Any = None) -> Tensor:
        """Return logits ``[R, B, T, vocab]`` of tokens ``[R, B, T]``, computed without a cache."""
        return self.trace(tokens, adapter, media).logits

    def trace(self, tokens: Tensor, adapter: Any = None, media: Any = None) -> Trace:
        """Return everything the full path computes; under native kernels each row is computed alone."""
        refuse_extras(adapter, media)
        if not self.config.arithmetic.native:
            return self.decoder.forward(tokens, 0, self.prefill_kernel)
        rows = [self.decoder.forward(row, 0, self.prefill_kernel) for row in torch.split(tokens, 1, dim=1)]
        layers = [zip(*(getattr(row, part) for row in rows), strict=True) for part in Trace.__slots__[1:]]
        return Trace(torch.cat([row.logits for row in rows], dim=1), *(tuple(map(join_rows, part)) for part in layers))

    def open(self, batch: int = 1, adapter: Any = None, media: Any = None) -> "Session":
        """Return a session with an empty cache for a batch of rows."""
        refuse_extras(adapter, media)
        return Session(self, batch)


class Session:
    """The cached path: rows that grow together; see ``mutkv.protocol.Session``."""

    hit_tokens = 0

    def __init__(self, engine: Engine, batch: int) -> None:
        self.engine = engine
        self.cache = new_cache(engine.config, engine.replicas, batch)
        self.length = 0
        self.prompt_length = 0  # length after the first extend
        self.last: Trace | None = None  # what the last extend computed

    def extend(self, tokens: Tensor, pad: Tensor | None = None) -> Tensor:
        """Feed tokens ``[R, B, n]`` over the cache; return their logits ``[R, B, n, vocab]``."""
        if pad is not None:
            raise Unsupported("the reference engine has no left padding in this configuration")
        kernel = self.engine.decode_kernel if self.length else self.engine.prefill_kernel
        start = self.length
        self.last = self.engine.decoder.forward(tokens, start, kernel, self.cache)
        self.length += tokens.shape[-1]
        self.prompt_length = self.prompt_length or self.length
        return self.last.logits

    def stored(self) -> LayerRows:
        """Return per layer (keys, values), each ``[R, B, length, kv_heads, head_dim]``."""
        # Copies: a preallocated cache is written in place when the session goes on.
        rows = (self.cache.read(layer).clone() for layer in range(self.engine.config.depth))
        return [(stored[0], stored[1]) for stored in rows]

    def save(self) -> dict[str, Any]:
        """Return the state as plain data, which the session leaves as it is when it goes on."""
        return {"length": self.length, "prompt_length": self.prompt_length, "cache": self.cache.save()}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from a state that ``save`` returned."""
        self.length, self.prompt_length = state["length"], state["prompt_length"]
        self.cache.load(state["cache"])

    def fork(self) -> "Session":
        """Return a session that continues from here on its own."""
        other = Session(self.engine, self.cache.batch)
        other.load(self.save())
        return other

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` tokens, as after rejected drafts."""
        if not 0 <= length <= self.length:
            raise UsageError(f"cannot crop to {length} tokens: the session holds {self.length}")
        self.cache.crop(length)
        self.length, self.prompt_length = length, min(self.prompt_length, length)

    def reorder(self, parents: Tensor) -> None:
        """Let row b continue from row ``parents[b]``; ``[B]``, or ``[R, B]`` where replicas differ."""
        self.cache.select(parents.expand(self.engine.replicas, -1))

    def keep(self, rows: Tensor) -> None:
        """Drop all rows but these; ``[B']``, or ``[R, B']`` where replicas differ."""
        self.cache.select(rows.expand(self.engine.replicas, -1))

    def reset(self) -> None:
        """Forget everything, for another request."""
        self.crop(0)

    def shift(self, count: int) -> None:
        """Not in this configuration."""
        raise Unsupported("the reference engine cannot shift in this configuration")


def new_cache(config: ModelConfig, replicas: int, batch: int) -> Cache:
    """Return an empty cache of the configured kind."""
    return StaticCache(config, replicas, batch) if config.capacity else GrowingCache(config, replicas, batch)


def refuse_extras(adapter: Any, media: Any) -> None:
    """Refuse what no configuration has yet, rather than ignore it."""
    if adapter is not None or media is not None:
        raise Unsupported("the reference engine has no adapters and no media in this configuration")


def join_rows(parts: tuple[Tensor, ...]) -> Tensor:
    """Join single rows ``[R, 1, ...]`` to a batch ``[R, B, ...]``."""
    return torch.cat(parts, dim=1)
