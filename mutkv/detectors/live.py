"""Counting the tokens that a live checker feeds: its cost is measured, because nobody can state it beforehand."""

from typing import Any

from torch import Tensor

from mutkv.configuration import ModelConfig
from mutkv.protocol import Engine, Session, Trace


class MeteredEngine:
    """An engine that counts what goes through it; see ``mutkv.protocol.Engine``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._fed = 0

    @property
    def config(self) -> ModelConfig:
        """Structure and arithmetic."""
        return self._engine.config

    def full(self, tokens: Tensor, adapter: Any = None, media: Any = None) -> Tensor:
        """Return logits at every position, computed without a cache."""
        self._fed += tokens.numel()
        return self._engine.full(tokens, adapter, media)

    def trace(self, tokens: Tensor, adapter: Any = None, media: Any = None) -> Trace:
        """Return everything the full path computed."""
        self._fed += tokens.numel()
        return self._engine.trace(tokens, adapter, media)

    def open(self, batch: int = 1, adapter: Any = None, media: Any = None) -> "MeteredSession":
        """Return a new session with an empty cache."""
        return MeteredSession(self, self._engine.open(batch, adapter, media))


class MeteredSession:
    """A session whose tokens are counted; everything else is the session's own."""

    def __init__(self, engine: MeteredEngine, session: Session) -> None:
        self._engine = engine
        self._session = session

    def extend(self, tokens: Tensor, pad: Tensor | None = None) -> Tensor:
        """Feed tokens ``[R, B, n]``; return logits ``[R, B, n, vocab]``."""
        self._engine._fed += tokens.numel()
        return self._session.extend(tokens, pad)

    def fork(self) -> "MeteredSession":
        """Return a session that continues from here on its own."""
        return MeteredSession(self._engine, self._session.fork())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def tokens_fed(engine: MeteredEngine) -> int:
    """Return how many tokens went through an engine and its sessions."""
    return engine._fed
