"""The reference engine: the full path (no cache) and sessions, the cached path, over one decoder."""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from mutkv.configuration import ModelConfig
from mutkv.errors import Unsupported
from mutkv.kernels import kernel_for
from mutkv.protocol import Trace
from mutkv.reference.blocks import BlockPool
from mutkv.reference.cache import Cache, GrowingCache
from mutkv.reference.model import Decoder
from mutkv.reference.paged import PagedCache
from mutkv.reference.ring import RingCache
from mutkv.reference.serve import Server
from mutkv.reference.session import Session
from mutkv.reference.static import StaticCache
from mutkv.reference.step import Step


class Engine:
    """A decoder with R replicas of weights; see ``mutkv.protocol.Engine``."""

    def __init__(self, config: ModelConfig, weights: dict[str, Tensor]) -> None:
        self.config = config
        self.decoder = Decoder(config, weights)
        self.replicas = weights["embedding"].shape[0]
        self.prefill_kernel = kernel_for(config.arithmetic, config.arithmetic.prefill_order)
        self.decode_kernel = kernel_for(config.arithmetic, config.arithmetic.decode_order)

    @cached_property
    def pool(self) -> BlockPool:
        """Blocks that all sessions share, where the cache is paged."""
        return BlockPool(self.config, self.replicas)

    def full(self, tokens: Tensor, adapter: Any = None, media: Any = None) -> Tensor:
        """Return logits ``[R, B, T, vocab]`` of tokens ``[R, B, T]``, computed without a cache."""
        return self.trace(tokens, adapter, media).logits

    def trace(self, tokens: Tensor, adapter: Any = None, media: Any = None) -> Trace:
        """Return everything the full path computes; under native kernels each row is computed alone."""
        self.check_extras(adapter, media)
        step = Step(self.prefill_kernel, adapter=adapter, media=media)
        if not self.config.arithmetic.native:
            return self.decoder.forward(tokens, step)
        rows = [self.decoder.forward(row, step) for row in torch.split(tokens, 1, dim=1)]
        layers = [zip(*(getattr(row, part) for row in rows), strict=True) for part in Trace.__slots__[1:]]
        return Trace(torch.cat([row.logits for row in rows], dim=1), *(tuple(map(join_rows, part)) for part in layers))

    def open(self, batch: int = 1, adapter: Any = None, media: Any = None) -> Session:
        """Return a session with an empty cache for a batch of rows."""
        self.check_extras(adapter, media)
        return Session(self, self.new_cache(batch), adapter, media)

    def serve(self) -> Server:
        """Return a server that carries requests through sessions of this engine, with a pool of its own."""
        if self.config.block:
            self.pool = BlockPool(self.config, self.replicas)
        return Server(self)

    def new_cache(self, batch: int) -> Cache:
        """Return an empty cache of the configured kind."""
        if self.config.block:
            return PagedCache(self.pool, self.config.depth, batch)
        if self.config.ring:
            return RingCache(self.config, self.replicas, batch)
        kind = StaticCache if self.config.capacity else GrowingCache
        return kind(self.config, self.replicas, batch)

    def check_extras(self, adapter: int | None, media: int | None) -> None:
        """Raise Unsupported for an adapter or a medium that this engine does not have, rather than ignore it."""
        for name, asked, known in (("adapter", adapter, self.config.adapters), ("medium", media, self.config.media)):
            if asked is not None and not 0 <= asked < known:
                raise Unsupported(f"the reference engine has no {name} {asked} in this configuration: it has {known}")


def join_rows(parts: tuple[Tensor, ...]) -> Tensor:
    """Join single rows ``[R, 1, ...]`` to a batch ``[R, B, ...]``."""
    return torch.cat(parts, dim=1)
