"""The clean side of a group: its engine run once, its control, and the watch over mutants that nobody checked.

Everything a mutant is compared with comes from here, and is shared by all mutants of the group.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from time import perf_counter

import torch
from torch import Tensor

from mutkv.configuration import Configuration, ModelConfig
from mutkv.errors import BaselineError
from mutkv.grid.control import Cacheless
from mutkv.kernels.ties import lowest_argmax
from mutkv.mutation.copy import MutatedPackage
from mutkv.mutation.mutant import Mutant
from mutkv.mutation.registry import is_shipped
from mutkv.protocol import Engine, Trace
from mutkv.reference import Engine as ReferenceEngine
from mutkv.weights import load_weights
from mutkv.workloads import Recording, as_recorded, at_observations, full_traces, record


@dataclass(frozen=True, slots=True)
class Baseline:
    """The clean engine's run of some seeds, shared by all their mutants."""

    configuration: Configuration
    seeds: tuple[int, ...]
    weights: dict[str, Tensor]
    engine: Engine
    recording: Recording
    traces: tuple[Trace, ...]
    """The full path over each of the recording's conversations."""
    full: Tensor
    """Logits of the full path at the observations, float64 ``[R, N, vocab]``."""
    argmax: Tensor
    """The clean cached path's choice at the observations, ``[R, N]``."""
    margin: Tensor
    """Its best logit minus its second best, float64 ``[R, N]``."""
    seconds: float
    """How long both paths took."""


def run_clean(configuration: Configuration, seeds: Sequence[int], device: str) -> Baseline:
    """Run the clean engine along its greedy tokens, then its full path over them."""
    start = perf_counter()
    config = configuration.model(device)
    weights = load_weights(config, configuration.weights, configuration.sharpness, tuple(seeds))
    engine = ReferenceEngine(config, weights)
    recording = record(engine, configuration, seeds)
    traces = full_traces(engine, recording)
    best = recording.logits.topk(2, dim=-1).values
    choice = (lowest_argmax(recording.logits), best[..., 0] - best[..., 1])
    full = at_observations(recording, traces)
    seconds = perf_counter() - start
    return Baseline(configuration, tuple(seeds), weights, engine, recording, traces, full, *choice, seconds)


def run_control(baseline: Baseline) -> Recording:
    """Repeat the full path in the other order: what reordering alone does, without a cache."""
    engine = Cacheless(baseline.engine.config, baseline.weights)
    recording = as_recorded(baseline.recording, full_traces(engine.other, baseline.recording))
    return replace(recording, answer=free_answer(engine, baseline))


def free_answer(engine: Engine, baseline: Baseline) -> Tensor | None:
    """Return what an engine answers by its own decisions, ``[R, T]``, where a workload searches; None elsewhere."""
    if baseline.recording.answer is None:
        return None
    return record(engine, baseline.configuration, baseline.seeds).answer


def mutated_engine(package: MutatedPackage, config: ModelConfig, weights: dict[str, Tensor]) -> Engine:
    """Return the engine of a mutated copy, with weights of its own: a mutant may write in place."""
    engine: Engine = package.module("engine").Engine(config, deepcopy(weights))
    return engine


def check_clean(baseline: Baseline, mutant: Mutant) -> None:
    """Raise BaselineError if a mutant left something behind that changes the clean engine, such as a patched kernel.

    A mutant of the shipped corpus is known not to. Without this, all later cases would be recorded wrong, and both
    paths alike, so that no comparison of them could tell.
    """
    if is_shipped(mutant):
        return
    case = replace(baseline.configuration, seed=baseline.seeds[0])
    again = run_clean(case, baseline.seeds[:1], baseline.engine.config.device)
    same = torch.equal(again.recording.logits[0], baseline.recording.logits[0])
    if not (same and torch.equal(again.full[0], baseline.full[0])):
        fix = "nothing of its group is recorded: mend its line"
        raise BaselineError(f"{mutant.source_path}: mutant '{mutant.id}' changes the clean engine, too; {fix}")


def check_path(mutant: Mutant, full: Tensor, clean: Tensor) -> None:
    """Raise BaselineError if a mutant that says it touches the cached path alone changes the full path."""
    if full.shape != clean.shape or not torch.equal(full, clean):
        fix = f"write path = 'both', and see 'mutkv mutants check {mutant.id}'"
        raise BaselineError(f"{mutant.source_path}: path = 'cached', but the full path changes as well: {fix}")
