"""A running request as a script sees it, and what is recorded of all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from mutkv.protocol import Trace
from mutkv.reference.serve import Request
from mutkv.workloads.recording import Conversation, Held, Observed


@dataclass(slots=True)
class Task:
    """A request of a server, its rows, and the tokens that each of them holds."""

    request: Request
    number: int
    rows: tuple[int, ...]
    """The rows that are left, by their numbers at the beginning."""
    parts: list[Conversation]
    """One conversation of all rows, or one of each row where their lengths differ."""
    step: int = 0
    logits: Tensor | None = None
    """Of the last position, ``[R, B, 1, vocab]``; None before anything was computed."""

    def split(self) -> Iterator[tuple[Conversation, slice]]:
        """Yield each conversation with its rows' places in the batch."""
        start = 0
        for part in self.parts:
            places = slice(start, start + part.tokens.shape[1])
            yield part, places
            start = places.stop

    def grow(self, tokens: Tensor) -> None:
        """Add tokens ``[R, B, n]`` that are fed."""
        for part, places in self.split():
            part.tokens = torch.cat([part.tokens, tokens[:, places]], dim=-1)

    def begun_again(self) -> list[Conversation]:
        """Return conversations of the same tokens that go on by themselves."""
        return [replace(part) for part in self.parts]


@dataclass(slots=True)
class Recorder:
    """What was observed, computed and held, call by call."""

    calls: int = 0
    observed: list[Observed] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)

    def trace(self, request: Request) -> None:
        """Keep what the last call computed, where the session offers it."""
        trace = getattr(request.session, "last", None)
        if trace is not None:
            self.traces.append(trace)

    def observe(self, task: Task, logits: Tensor | None, emitted: Sequence[bool] = (True,)) -> None:
        """Keep the logits ``[R, B, n, vocab]`` of the last n positions of a task; n flags say which are emitted.

        Raises:
            ValueError: an engine gave logits of another shape than it should.
        """
        logits = needed(logits)
        count, flags = len(emitted), tuple(emitted)
        shape = (len(task.parts[0].tokens), len(task.rows), count, logits.shape[-1])
        if logits.shape != shape:
            raise ValueError(f"logits of shape {list(logits.shape)} instead of {list(shape)}")
        for part, places in task.split():
            begin = (task.step - count + 1, self.calls)
            rows, position = task.rows[places], part.tokens.shape[-1] - count
            self.observed.append(Observed(task.number, rows, *begin, part, position, flags, logits[:, places]))
        task.logits = logits[:, :, -1:]
        self.calls += 1

    def hold(self, task: Task, places: Sequence[int]) -> None:
        """Keep what the cache holds of the rows at these places."""
        stored = task.request.session.stored()
        for part, span in task.split():
            own = [place for place in places if span.start <= place < span.stop]
            if own:
                layers = [(keys[:, own], values[:, own]) for keys, values in stored]
                if len(task.parts) > 1:
                    layers = [(without_end(keys), without_end(values)) for keys, values in layers]
                self.held.append(Held(task.number, tuple(task.rows[place] for place in own), part, layers))


def without_end(rows: Tensor) -> Tensor:
    """Return stored rows ``[R, b, T, kv_heads, head_dim]`` without an end at which a padded row holds nothing (NaN)."""
    there = (~rows.isnan()).transpose(0, 2).flatten(1).any(dim=1).nonzero()  # positions, [n, 1]
    return rows[:, :, : int(there.max()) + 1 if len(there) else 0]


def needed(logits: Tensor | None) -> Tensor:
    """Return logits that a script needs to go on."""
    if logits is None:
        raise ValueError("no logits: nothing was computed yet")
    return logits
