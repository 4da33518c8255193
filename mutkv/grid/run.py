"""Running one group: the clean engine once, its full path once, and every mutant against them.

All seeds of the group are replicas of one engine. A mutant whose file says that only the cached path is touched
shares the clean full path; one that acts only while decoding starts from the clean state after the prefill.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mutkv.configuration import Configuration
from mutkv.errors import ReplicasDisagree
from mutkv.grid.attempt import attempt
from mutkv.grid.clean import Baseline, check_clean, check_path, free_answer, mutated_engine, run_clean, run_control
from mutkv.grid.plan import Case, Group
from mutkv.mutation.copy import MutatedPackage
from mutkv.mutation.mutant import Mutant
from mutkv.mutation.registry import is_shipped
from mutkv.workloads import Recording, at_observations, full_stepwise, full_traces, record


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one mutant did on R seeds; the tensors are None unless the status is ``ok``."""

    cases: tuple[Case, ...]
    baseline: Baseline | None
    mutant: Mutant | None
    status: str = "ok"
    error: str | None = None
    cached: Tensor | None = None
    full: Tensor | None = None
    recording: Recording | None = None
    reached: bool | None = None
    answer: Tensor | None = None
    """Where a workload searches: what the engine finds by itself, ``[R, T]``."""


def run_group(group: Group, mutants: Mapping[str, Mutant], device: str) -> Iterator[Outcome]:
    """Run all cases of a group; yield one outcome per mutant (and per seed where a mutant fails)."""
    torch.set_num_threads(1)
    with torch.no_grad():
        for seeds, names in blocks(group):
            for baseline in clean_runs(group.configuration, seeds, device):
                for name in names:
                    own = (case for case in group.cases if case.configuration.seed in baseline.seeds)
                    cases = tuple(case for case in own if case.mutant == name)
                    yield from run_cases(cases, mutants.get(name), baseline)


def clean_runs(configuration: Configuration, seeds: tuple[int, ...], device: str) -> Iterator[Baseline]:
    """Run the clean engine on all seeds at once, or on each alone where their control flow differs."""
    try:
        yield run_clean(configuration, seeds, device)
    except ReplicasDisagree:
        yield from (run_clean(configuration, [seed], device) for seed in seeds)


def blocks(group: Group) -> Iterator[tuple[tuple[int, ...], list[str]]]:
    """Yield seeds and the mutants that are pending on just these seeds: one block unless a resume left gaps."""
    seeds_of: dict[str, list[int]] = defaultdict(list)
    for case in group.cases:
        seeds_of[case.mutant].append(case.configuration.seed)
    names_of: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name, seeds in seeds_of.items():
        names_of[tuple(seeds)].append(name)
    yield from names_of.items()


def run_cases(cases: tuple[Case, ...], mutant: Mutant | None, baseline: Baseline) -> Iterator[Outcome]:
    """Run one mutant on all seeds at once; where that fails, seed by seed, so that one seed cannot take the rest."""
    name = cases[0].mutant
    if name == "clean":
        recording = baseline.recording
        found = (recording.logits, baseline.full, recording, None, recording.answer)
        yield Outcome(cases, baseline, None, "ok", None, *found)
    elif name == "control":
        control = run_control(baseline)
        yield Outcome(cases, baseline, None, cached=control.logits, full=baseline.full, answer=control.answer)
    else:
        assert mutant is not None, f"the plan has a case of '{name}', which no mutant file defines"
        outcome = run_attempt(cases, mutant, baseline)
        if outcome.status != "crashed" or len(cases) == 1:  # a timeout would only be waited for again
            yield outcome
        else:
            yield from (run_alone(case, mutant, baseline) for case in cases)
        check_clean(baseline, mutant)


def run_alone(case: Case, mutant: Mutant, baseline: Baseline) -> Outcome:
    """Run one mutant on one seed, beside a clean run of that seed."""
    device = baseline.engine.config.device
    return run_attempt((case,), mutant, run_clean(case.configuration, [case.configuration.seed], device))


def run_attempt(cases: tuple[Case, ...], mutant: Mutant, baseline: Baseline) -> Outcome:
    """Run one mutant on the seeds of these cases."""
    done = attempt(mutant, baseline.seconds, lambda package: run_mutant(mutant, package, baseline))
    if done.value is None:
        return Outcome(cases, baseline, mutant, done.status, done.error, reached=done.reached)
    recording, full = done.value
    found = (recording.logits, full, recording, done.reached, recording.answer)
    return Outcome(cases, baseline, mutant, "ok", None, *found)


def run_mutant(mutant: Mutant, package: MutatedPackage, baseline: Baseline) -> tuple[Recording, Tensor]:
    """Run the mutated cached path along the clean engine's tokens, and the full path that a checker would see."""
    engine = mutated_engine(package, baseline.engine.config, baseline.weights)
    clean = baseline.recording
    recording = record(engine, baseline.configuration, baseline.seeds, clean, mutant.acts == "decode")
    if recording.logits.shape != clean.logits.shape:
        raise ValueError(f"logits of shape {list(recording.logits.shape)} instead of {list(clean.logits.shape)}")
    recording = replace(recording, answer=free_answer(engine, baseline))
    if mutant.path != "cached":
        return recording, full_stepwise(engine, clean)
    if not is_shipped(mutant):  # a shipped one was checked with the corpus
        check_path(mutant, at_observations(clean, full_traces(engine, clean)), baseline.full)
    return recording, baseline.full
