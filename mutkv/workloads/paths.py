"""The full path along a recording: every conversation recomputed without a cache, at once or step by step."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from mutkv.protocol import Engine, Trace
from mutkv.workloads.recording import Recording


def full_traces(engine: Engine, recording: Recording) -> tuple[Trace, ...]:
    """Recompute each conversation in one pass, valid at every step for a causal engine."""
    # Copies: an engine under test may write in place.
    return tuple(engine.trace(one.tokens.clone(), one.adapter, one.media) for one in recording.conversations)


def at_observations(recording: Recording, traces: tuple[Trace, ...]) -> Tensor:
    """Pick the observations from the logits of all conversations, float64 ``[R, N, vocab]``."""
    flat = torch.cat([trace.logits.flatten(1, 2) for trace in traces], dim=1)
    shapes = np.array([one.tokens.shape[1:] for one in recording.conversations])  # rows and length of each
    starts = np.cumsum(shapes.prod(axis=1)) - shapes.prod(axis=1)
    position, place, row = recording.columns[[3, 6, 7]][:, recording.sorting]
    return flat[:, torch.from_numpy(starts[place] + row * shapes[place, 1] + position)].double()


def as_recorded(recording: Recording, traces: tuple[Trace, ...]) -> Recording:
    """Return what a cached path would have recorded that computed and kept just this."""
    held = []
    for part in recording.held:
        trace = traces[recording.place(part.conversation)]
        held.append(replace(part, stored=list(zip(trace.keys, trace.values, strict=True))))
    observed = []
    for call in recording.observed:
        logits = traces[recording.place(call.conversation)].logits
        observed.append(replace(call, logits=logits[:, :, call.position : call.position + len(call.emitted)]))
    return Recording(tuple(observed), recording.decisions, traces, tuple(held), None, [])


def full_stepwise(engine: Engine, recording: Recording) -> Tensor:
    """Recompute from the tokens at every observation, float64 ``[R, N, vocab]``."""
    found = []
    for part in recording.observed:
        own = part.conversation
        for index in range(len(part.emitted)):
            tokens = own.tokens[..., : part.position + index + 1].clone()
            found.append(engine.full(tokens, own.adapter, own.media)[:, :, -1])  # [R, b, vocab]
    return in_order(recording, found)


def in_order(recording: Recording, found: list[Tensor]) -> Tensor:
    """Order logits ``[R, b, vocab]``, one per call and step, as the observations are -> ``[R, N, vocab]``."""
    flat, start = [], 0
    for part in recording.observed:
        steps = found[start : start + len(part.emitted)]
        flat.append(torch.stack(steps, dim=2).flatten(1, 2))  # [R, b * n, vocab]
        start += len(steps)
    return torch.cat(flat, dim=1).double()[:, torch.from_numpy(recording.sorting)]
