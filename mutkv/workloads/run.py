"""One run of a script over an engine: the events that scripts are made of.

A script says what happens to requests, the engine's server does it, and a run records it. What the clean engine
decides by its own logits is recorded, too, and repeated for every engine under test.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mutkv.configuration import Configuration
from mutkv.kernels.ties import lowest_argmax
from mutkv.protocol import Engine, LayerRows
from mutkv.reference.serve import Request, Saved, Server
from mutkv.weights import row_tokens
from mutkv.workloads.recording import Conversation, Recording
from mutkv.workloads.task import Recorder, Task, needed

DRAWS = 10_000
"""More than a batch has rows: row b of draw d is row b + DRAWS · d of the prompts."""


@dataclass(slots=True)
class Run:
    """Events of a script. Tokens are ``[R, B, n]``, logits ``[R, B, n, vocab]``."""

    configuration: Configuration
    seeds: Sequence[int]
    engine: Engine
    forced: Iterator[Tensor] | None = None
    """Decisions to repeat; None to take the engine's own."""
    clean: Recording | None = None
    """A clean run from whose first prefill this one starts; None to prefill."""
    server: Server = field(init=False)
    record: Recorder = field(default_factory=Recorder)
    live: list[Task] = field(default_factory=list)
    requests: int = 0
    draws: int = 0
    decisions: list[Tensor] = field(default_factory=list)
    snapshot: Any = None
    prefilled: LayerRows = field(default_factory=list)
    answer: Tensor | None = None

    def __post_init__(self) -> None:
        serve = getattr(self.engine, "serve", None)  # an engine under test has its own loop
        self.server = serve() if serve else Server(self.engine)

    def draw(self, length: int, rows: int | None = None) -> Tensor:
        """Return tokens that were not drawn before: a prompt, what a user says, drafts."""
        self.draws += 1
        return self.drawn(self.draws - 1, length, self.configuration.batch if rows is None else rows)

    def drawn(self, number: int, length: int, rows: int) -> Tensor:
        """Return the tokens of one draw, ``[R, rows, length]``."""
        places = range(DRAWS * number, DRAWS * number + rows)
        tokens = [[row_tokens(self.configuration, seed, row, length) for row in places] for seed in self.seeds]
        shape = (len(self.seeds), rows, length)
        return torch.from_numpy(np.array(tokens, np.int64).reshape(shape)).to(self.engine.config.device)

    def decide(self, own: Callable[[], Tensor]) -> Tensor:
        """Return the clean engine's decision, or the engine's own in a clean or a free run."""
        self.decisions.append(own() if self.forced is None else next(self.forced))
        return self.decisions[-1].clone()  # an engine under test may write in place

    def choose(self, task: Task) -> Tensor:
        """Return each row's likeliest next token, or the given one behind an empty prompt."""
        if task.logits is None:
            return self.drawn(0, 1, len(task.rows))
        return self.decide(lambda: lowest_argmax(needed(task.logits)))

    def admit(self, tokens: Tensor, pad: Sequence[int] = (), **how: Any) -> Task:
        """Begin a request and prefill it; ``how`` are chunks, adapter and media of ``Server.admit``.

        With pads, row b's prompt begins at column ``pad[b]``.
        """
        adapter, media = how.get("adapter"), how.get("media")
        effective = self.server.base if adapter is None else adapter
        rows = torch.split(tokens, 1, dim=1) if pad else [tokens]
        begins = pad or [0]
        parts = [Conversation(row[..., start:], effective, media) for row, start in zip(rows, begins, strict=True)]
        request, logits = self._prefill(tokens, pad, how)
        task = self._begin(request, tuple(range(tokens.shape[1])), parts)
        if logits is not None:
            self.record.observe(task, logits)
        if task.number == 0 and tokens.shape[-1]:
            self.prefilled = request.session.stored()
            self.snapshot = request.session.save() if self.forced is None else None
        return task

    def _prefill(self, tokens: Tensor, pad: Sequence[int], how: dict[str, Any]) -> tuple[Request, Tensor | None]:
        if self.clean is None or self.clean.snapshot is None:
            pads = torch.tensor(pad, device=tokens.device) if pad else None
            request, logits = self.server.admit(tokens.clone(), pad=pads, **how)
            if tokens.shape[-1]:
                self.record.trace(request)
            return request, logits
        session = self.engine.open(tokens.shape[1])
        session.load(deepcopy(self.clean.snapshot))  # a mutant may write in place
        self.record.traces.append(self.clean.traces[0])
        return Request(session, tokens.clone(), None, None), self.clean.traces[0].logits[:, :, -1:]

    def _begin(self, request: Request, rows: tuple[int, ...], parts: list[Conversation], step: int = 0) -> Task:
        task = Task(request, self.requests, rows, parts, step)
        self.requests += 1
        self.live.append(task)
        return task

    def feed(self, task: Task, tokens: Tensor, emitted: Sequence[bool] = ()) -> None:
        """Feed tokens and observe each of them; all are emitted unless said otherwise."""
        logits = self.server.decode(task.request, tokens.clone())
        self.record.trace(task.request)
        task.grow(tokens)
        task.step += tokens.shape[-1]
        self.record.observe(task, logits, emitted or [True] * tokens.shape[-1])

    def decode(self, task: Task, steps: int) -> None:
        """Decode greedily."""
        for _ in range(steps):
            self.feed(task, self.choose(task))

    def turn(self, task: Task, tokens: Tensor) -> None:
        """Let a conversation go on, as a request of its own: the last answer's last token, then new tokens."""
        fresh = torch.cat([self.choose(task), tokens], dim=-1)
        logits = self.server.turn(task.request, fresh.clone())
        self.record.trace(task.request)
        task.grow(fresh)
        task.number, task.step = self.requests, 0
        self.requests += 1
        self.record.observe(task, logits)

    def reject(self, task: Task, count: int) -> None:
        """Roll the last ``count`` tokens of the last call back; the one before them decides what comes next."""
        self.server.reject(task.request, count)
        logits = self.record.observed[-1].logits
        task.logits = logits[:, :, logits.shape[2] - count - 1][:, :, None]
        if count:
            task.parts = [replace(part, tokens=part.tokens[..., :-count]) for part in task.parts]

    def branch(self, task: Task, parents: Tensor) -> None:
        """Let beam b go on from beam ``parents[r, b]``."""
        self.server.branch(task.request, parents.clone())
        [part] = task.parts
        rows = part.tokens.gather(1, parents[..., None].expand(-1, -1, part.tokens.shape[-1]))
        task.parts = [replace(part, tokens=rows)]

    def leave(self, task: Task, rows: Sequence[int]) -> None:
        """Let all rows end but those at these places; each row is a conversation of its own."""
        self.record.hold(task, [place for place in range(len(task.rows)) if place not in rows])
        self.server.leave(task.request, torch.tensor(rows, device=self.engine.config.device))
        task.parts = [task.parts[row] for row in rows]
        task.rows = tuple(task.rows[row] for row in rows)
        task.logits = needed(task.logits)[:, list(rows)]

    def fork(self, task: Task) -> Task:
        """Begin a request that goes on from where this one is."""
        return self._begin(self.server.fork(task.request), task.rows, task.begun_again(), task.step)

    def save(self, task: Task) -> tuple[Saved, Task]:
        """Return a request's state, and the task as it is now."""
        return self.server.save(task.request), replace(task, parts=task.begun_again())

    def restore(self, saved: tuple[Saved, Task]) -> Task:
        """Begin a request from a saved state; its last token is computed again, and not emitted again."""
        request, logits = self.server.restore(saved[0])
        self.record.trace(request)
        task = self._begin(request, saved[1].rows, saved[1].begun_again(), saved[1].step)
        self.record.observe(task, logits, [False])
        return task

    def finish(self, task: Task) -> None:
        """End a request."""
        self.record.hold(task, range(len(task.rows)))
        self.live.remove(task)
        self.server.finish(task.request)

    def recording(self) -> Recording:
        """Return what was recorded, with what the cache holds of requests that still run."""
        for task in self.live:
            self.record.hold(task, range(len(task.rows)))
        made = self.record
        parts = (tuple(made.observed), tuple(self.decisions), tuple(made.traces), tuple(made.held))
        return Recording(*parts, self.snapshot, self.prefilled, self.answer)
