"""Prefill a prompt, then decode one token at a time: the plainest use of a cache.

Step k are the logits after k tokens were decoded, step 0 the prefill's last position. An empty prompt has no step 0:
its first token is given and fed at step 1.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mutkv.configuration import Configuration
from mutkv.kernels.ties import lowest_argmax
from mutkv.protocol import Engine, LayerRows, Session, Trace
from mutkv.weights import prompt_tokens
from mutkv.workloads.workload import Layout, Recording


class Decode:
    """See ``mutkv.workloads.workload.Workload``."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.prefill = configuration.prompt_length
        self.first_step = 0 if self.prefill else 1
        steps = np.arange(self.first_step, configuration.steps + 1)
        rows = np.repeat(np.arange(configuration.batch), len(steps))
        steps = np.tile(steps, configuration.batch)
        emitted = np.ones(len(steps), dtype=np.bool_)
        self.layout = Layout(np.zeros_like(steps), rows, steps, self.prefill - 1 + steps, emitted)

    def prompt(self, seeds: Sequence[int]) -> Tensor:
        """Return the prompt, or the one given token of an empty prompt, ``[R, B, given]``."""
        given = max(self.prefill, 1)
        drawn = [prompt_tokens(self.configuration, seed, given) for seed in seeds]
        return torch.from_numpy(np.stack(drawn))

    def greedy(self, engine: Engine, prompt: Tensor) -> Recording:
        """Run the cached path along its own greedy tokens."""
        return self._run(engine, prompt, None)

    def forced(self, engine: Engine, tokens: Tensor, clean: Recording | None = None) -> Recording:
        """Run the cached path along these tokens, or only its decode steps, behind a clean prefill."""
        return self._run(engine, tokens.clone(), clean)  # the engine under test may write in place

    def _run(self, engine: Engine, tokens: Tensor, clean: Recording | None) -> Recording:
        session = engine.open(self.configuration.batch)
        snapshot: Any = None
        prefilled: LayerRows = []
        logits: list[Tensor] = []
        traces: list[Trace] = []
        if clean is not None and clean.snapshot is not None:
            session.load(deepcopy(clean.snapshot))  # a mutant may write in place
            traces.append(clean.traces[0])
            logits.append(clean.traces[0].logits[:, :, -1:])
        elif self.prefill:
            logits.append(feed(session, tokens[..., : self.prefill], traces))
            snapshot, prefilled = session.save(), session.stored()
        for index in range(self.prefill, self.configuration.tokens):
            if index == tokens.shape[-1]:  # greedy: nothing is forced here
                tokens = torch.cat([tokens, lowest_argmax(logits[-1])], dim=-1)
            logits.append(feed(session, tokens[..., index : index + 1], traces))
        observed = torch.cat(logits, dim=2).double().flatten(1, 2)
        return Recording(tokens, observed, tuple(traces), session.stored(), snapshot, prefilled)

    def forced_tokens(self, tokens: Tensor) -> Tensor:
        """Return the token fed to produce each observation, ``[R, N]``."""
        return tokens[..., self._observations()].flatten(1)

    def full(self, engine: Engine, tokens: Tensor) -> Trace:
        """Run the full path over all tokens at once."""
        return engine.trace(tokens.clone())

    def observed(self, logits: Tensor) -> Tensor:
        """Pick the observations from full logits."""
        return logits[:, :, self._observations()].double().flatten(1, 2)

    def full_stepwise(self, engine: Engine, tokens: Tensor) -> Tensor:
        """Recompute the whole sequence at every step."""
        ends = range(self.prefill - 1 + self.first_step, self.configuration.tokens)
        last = [engine.full(tokens[..., : end + 1].clone())[:, :, -1:] for end in ends]
        return torch.cat(last, dim=2).double().flatten(1, 2)

    def _observations(self) -> slice:
        return slice(self.prefill - 1 + self.first_step, self.configuration.tokens)


def feed(session: Session, tokens: Tensor, traces: list[Trace]) -> Tensor:
    """Feed ``[R, B, n]``; keep the trace where the session offers one; return the last logits ``[R, B, 1, vocab]``."""
    logits = session.extend(tokens)[:, :, -1:]
    trace = getattr(session, "last", None)
    if trace is not None:
        traces.append(trace)
    return logits
