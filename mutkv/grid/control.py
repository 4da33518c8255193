"""The control: an engine without a cache. What it deviates by is what reordering alone does.

Its full path is as ever, and its sessions recompute all their tokens in the other order of sums.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from mutkv.configuration import ModelConfig
from mutkv.errors import Unsupported
from mutkv.protocol import Engine, LayerRows, Session
from mutkv.reference import Engine as ReferenceEngine
from mutkv.reference import Server


class Cacheless(ReferenceEngine):
    """The control's engine: its full path as ever, its sessions recompute all tokens in the other order."""

    def __init__(self, config: ModelConfig, weights: dict[str, Tensor]) -> None:
        super().__init__(config, weights)
        arithmetic = replace(config.arithmetic, prefill_order=config.arithmetic.control_order)
        self.other = ReferenceEngine(replace(config, arithmetic=arithmetic), weights)

    def open(self, batch: int = 1, adapter: Any = None, media: Any = None) -> Session:  # type: ignore[override]
        """Return a session without a cache."""
        tokens = torch.empty(self.replicas, batch, 0, dtype=torch.int64, device=self.config.device)
        return CachelessSession(self.other, tokens, adapter, media)

    def serve(self) -> Server:
        """Return a server without a prefix store: there is nothing to store."""
        return Server(self, stores=False)


class CachelessSession:
    """A session that remembers tokens alone ``[R, B, length]``; see ``mutkv.protocol.Session``."""

    hit_tokens = 0

    def __init__(self, engine: Engine, tokens: Tensor, adapter: Any = None, media: Any = None) -> None:
        self.engine, self.tokens, self.adapter, self.media = engine, tokens, adapter, media

    @property
    def length(self) -> int:
        """Tokens that were fed so far."""
        return self.tokens.shape[-1]

    def extend(self, tokens: Tensor, pad: Tensor | None = None) -> Tensor:
        """Add tokens ``[R, B, n]`` and recompute everything; return their logits ``[R, B, n, vocab]``."""
        if pad is not None:
            raise Unsupported("a control has no left padding")
        self.tokens = torch.cat([self.tokens, tokens], dim=-1)
        return self.engine.full(self.tokens, self.adapter, self.media)[:, :, self.length - tokens.shape[-1] :]

    def stored(self) -> LayerRows:
        """Return the keys and values of a recompute."""
        trace = self.engine.trace(self.tokens, self.adapter, self.media)
        return list(zip(trace.keys, trace.values, strict=True))

    def fork(self) -> "CachelessSession":
        """Return a session that continues from here on its own."""
        return CachelessSession(self.engine, self.tokens, self.adapter, self.media)

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` tokens."""
        self.tokens = self.tokens[..., :length]

    def reorder(self, parents: Tensor) -> None:
        """Let row b continue from row ``parents[b]``; ``[B]``, or ``[R, B]`` where replicas differ."""
        parents = parents.expand(len(self.tokens), -1)
        self.tokens = self.tokens.gather(1, parents[..., None].expand(-1, -1, self.length))

    def keep(self, rows: Tensor) -> None:
        """Drop all rows but these."""
        self.reorder(rows)

    def shift(self, count: int) -> None:
        """Drop the ``count`` oldest tokens."""
        self.tokens = self.tokens[..., count:]

    def reset(self) -> None:
        """Forget everything."""
        self.crop(0)

    def save(self) -> Tensor:
        """Return the tokens."""
        return self.tokens

    def load(self, state: Tensor) -> None:
        """Continue from tokens that ``save`` returned."""
        self.tokens = state
