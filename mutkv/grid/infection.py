"""What happened inside an engine: where a mutant infected its state, and how exact a clean cache's content is.

Stored rows and attention outputs are compared bit by bit. A row that a cache let go of is NaN, and equals NaN alone.
"""

from typing import Any

import torch
from torch import Tensor

from mutkv.grid.clean import Baseline
from mutkv.grid.run import Outcome
from mutkv.workloads import Recording


def infection(outcome: Outcome, baseline: Baseline) -> dict[str, Any]:
    """Return whether stored rows or an attention output differ from the clean engine's, and the first such layer.

    Layers count from 1. Clean cases and the control have no mutant that could infect them.
    """
    count = len(outcome.cases)
    if outcome.mutant is None or outcome.recording is None:
        return {"infected": [None] * count, "first_infected_layer": [None] * count}
    clean, depth = baseline.recording, baseline.engine.config.depth
    by_layer = torch.stack([infected(outcome.recording, clean, layer) for layer in range(depth)])
    found = by_layer.any(dim=0).tolist()  # [R]
    layers = (by_layer.int().argmax(dim=0) + 1).tolist()
    return {
        "infected": found,
        "first_infected_layer": [layer if ok else None for layer, ok in zip(layers, found, strict=True)],
    }


def infected(recording: Recording, clean: Recording, layer: int) -> Tensor:
    """Return per seed whether a layer's stored keys, values or attention output differ, ``[R]``."""
    held = zip(recording.held, clean.held, strict=True)
    pairs = [pair for own, right in held for pair in zip(own.stored[layer], right.stored[layer], strict=True)]
    differs = torch.zeros(clean.logits.shape[0], dtype=torch.bool, device=clean.logits.device)
    if recording.traces:  # an engine of another kind than ours offers none
        if len(recording.traces) != len(clean.traces):
            return torch.ones_like(differs)  # a call was left out, or made twice
        traces = zip(recording.traces, clean.traces, strict=True)
        pairs += [(own.attended[layer], right.attended[layer]) for own, right in traces]
    for mutated, right in pairs:
        if mutated.shape != right.shape:
            return torch.ones_like(differs)
        nowhere = mutated.isnan() & right.isnan()  # neither holds anything there
        differs |= ((mutated != right) & ~nowhere).flatten(1).any(dim=1)
    return differs


def exactness(outcome: Outcome, baseline: Baseline) -> dict[str, Any]:
    """Return, for clean cases, the largest deviation of stored rows and of the first layer's attention output.

    The attention output is compared where a script has one request.
    """
    count, recording = len(outcome.cases), outcome.recording
    if outcome.mutant is not None or recording is None:
        return {"kv_max_abs": [None] * count, "attended_max_abs": [None] * count}
    rows = []
    for held in recording.held:
        trace = baseline.traces[recording.place(held.conversation)]
        pairs = zip(held.stored, trace.keys, trace.values, strict=True)
        rows += [largest(part, full) for stored, *fulls in pairs for part, full in zip(stored, fulls, strict=True)]
    columns = {"kv_max_abs": torch.stack(rows).amax(dim=0).tolist(), "attended_max_abs": [None] * count}
    if baseline.configuration.workload == "decode":
        columns["attended_max_abs"] = largest(recording.attended(0), baseline.traces[0].attended[0]).tolist()
    return columns


def largest(left: Tensor, right: Tensor) -> Tensor:
    """Return per seed the largest absolute difference, float64 ``[R]``; rows that are let go of (NaN) have none."""
    return (left.double() - right.double()).abs().nan_to_num(0.0).flatten(1).amax(dim=1)
