"""The serving loop: what an engine does between a request's arrival and its end, beside computing.

It looks up stored prefixes, cuts prompts into chunks, carries conversations, rejects drafts, moves beams, lets rows
leave, saves, restores, preempts and resumes, and gives used sessions to the next request. Which tokens are fed is
decided outside; all that is decided here depends on the calls alone.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mutkv.protocol import Engine, Session
from mutkv.reference.prefix import PrefixStore


@dataclass(slots=True)
class Request:
    """A running request: its session, and every token that the session holds or must hold again."""

    session: Session
    tokens: Tensor
    """``[R, B, length]``, pads included."""
    adapter: int | None
    media: int | None
    swapped: Any = None
    """The session's state while it is swapped out."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A request on disk: the session's state and its tokens."""

    state: Any
    tokens: Tensor
    adapter: int | None
    media: int | None


class Server:
    """Requests of one engine; all logits are ``[R, B, n, vocab]``."""

    def __init__(self, engine: Engine, stores: bool = True) -> None:
        self.engine = engine
        self.base: int | None = None  # the adapter that was merged into the weights
        pool = getattr(engine, "pool", None) if engine.config.block and stores else None
        self.store = PrefixStore(pool) if pool else None
        self.idle: dict[tuple[Any, ...], list[Session]] = defaultdict(list)  # used sessions, by what they are good for
        self.logits: Tensor | None = None  # of the last evaluation

    def admit(
        self,
        tokens: Tensor,
        chunks: Sequence[int] = (),
        pad: Tensor | None = None,
        adapter: int | None = None,
        media: int | None = None,
    ) -> tuple[Request, Tensor | None]:
        """Begin a request and prefill its prompt ``[R, B, T]``, in one piece or in chunks of these lengths.

        The logits are those of its last token; None if nothing was computed yet.
        """
        session = self._session(tokens.shape[1], adapter, media)
        request = Request(session, tokens, adapter, media)
        if self.store:
            session.share(self.store.lookup(tokens, adapter, media))  # type: ignore[attr-defined]
        for part in pieces(tokens[..., session.hit_tokens :], chunks):
            self.logits = session.extend(part, pad)
            pad = None  # it comes with the first tokens
        return request, None if self.logits is None else self.logits[:, :, -1:]

    def _session(self, rows: int, adapter: int | None, media: int | None) -> Session:
        """Return a used session for this many rows, or a new one."""
        idle = self.idle[rows, adapter, media]
        if idle:
            return idle.pop()
        return self.engine.open(rows, self.base if adapter is None else adapter, media)

    def decode(self, request: Request, tokens: Tensor) -> Tensor:
        """Feed tokens ``[R, B, n]`` behind what the request holds: one, or one and drafts to verify."""
        request.tokens = torch.cat([request.tokens, tokens], dim=-1)
        self.logits = request.session.extend(tokens)
        return self.logits

    def reject(self, request: Request, count: int) -> None:
        """Roll the last ``count`` drafts back."""
        kept = request.session.length - count
        request.session.crop(kept)
        request.tokens = request.tokens[..., :kept]

    def branch(self, request: Request, parents: Tensor) -> None:
        """Let beam b go on from beam ``parents[r, b]``; ``[R, B]``."""
        request.session.reorder(parents)
        request.tokens = take_rows(request.tokens, parents)

    def leave(self, request: Request, rows: Tensor) -> None:
        """Go on with these rows of a batch alone, ``[B']``; the others are done."""
        before = request.session.length
        request.session.keep(rows)
        request.tokens = request.tokens[:, rows, before - request.session.length :]

    def turn(self, request: Request, tokens: Tensor) -> Tensor:
        """Go on with a conversation: its last answer's last token was never fed, then come new tokens ``[R, B, n]``."""
        conversation = torch.cat([request.tokens, tokens], dim=-1)
        fresh = conversation[..., request.session.length :]
        request.tokens = conversation
        self.logits = request.session.extend(fresh)
        return self.logits[:, :, -1:]

    def fork(self, request: Request) -> Request:
        """Return a second request that goes on from here."""
        return Request(request.session.fork(), request.tokens, request.adapter, request.media)

    def save(self, request: Request) -> Saved:
        """Return a request's state; the request goes on."""
        return Saved(request.session.save(), request.tokens, request.adapter, request.media)

    def restore(self, saved: Saved) -> tuple[Request, Tensor]:
        """Begin a request from a saved state; no logits were saved, so that its last token is computed again."""
        session = self._session(saved.tokens.shape[1], saved.adapter, saved.media)
        session.load(saved.state)
        session.crop(session.length - 1)
        self.logits = session.extend(saved.tokens[..., -1:])
        return Request(session, saved.tokens, saved.adapter, saved.media), self.logits

    def preempt(self, request: Request, swap: bool = False) -> None:
        """Take a request's memory away; only its tokens are kept, or its state is swapped out."""
        request.swapped = request.session.save() if swap else None
        request.session.reset()

    def resume(self, request: Request) -> None:
        """Swap a preempted request in, or compute again what it held."""
        if request.swapped is None:
            request.session.extend(request.tokens)
        else:
            request.session.load(request.swapped)

    def finish(self, request: Request) -> None:
        """End a request: store its full blocks under their keys, and give its session to the next one."""
        if self.store:
            tables = request.session.cache.tables  # type: ignore[attr-defined]
            self.store.publish(request.tokens, tables, request.adapter, request.media)
        request.session.reset()
        self.idle[request.tokens.shape[1], request.adapter, request.media].append(request.session)

    def update(self, adapter: int) -> None:
        """Change the weights: merge an adapter into the base. What was computed with the old base is void."""
        self.base = adapter
        self.idle.clear()
        if self.store:
            self.store.clear()


def pieces(tokens: Tensor, chunks: Sequence[int]) -> Sequence[Tensor]:
    """Cut tokens ``[R, B, T]`` into chunks of these lengths, what is left over included; none of no tokens."""
    left = tokens.shape[-1] - sum(chunks)
    lengths = [*chunks, left] if left >= 0 else [tokens.shape[-1]]
    return [part for part in torch.split(tokens, lengths, dim=-1) if part.shape[-1]]


def take_rows(tokens: Tensor, rows: Tensor) -> Tensor:
    """Return row ``rows[r, b]`` of each replica; tokens ``[R, B, T]``, rows ``[R, B']``."""
    return tokens.gather(1, rows[..., None].expand(-1, -1, tokens.shape[-1]))
