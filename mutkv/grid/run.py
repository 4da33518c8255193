"""Running one group: the clean engine once, its full path once, and every mutant against them.

All seeds of the group are replicas of one engine. A mutant whose file says that only the cached path is touched
shares the clean full path; one that acts only while decoding starts from the clean state after the prefill.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from time import perf_counter

import torch
from torch import Tensor

from mutkv.configuration import Configuration, ModelConfig
from mutkv.errors import BaselineError, one_line
from mutkv.grid.limits import CaseTimeout, time_limit
from mutkv.grid.plan import REFERENCE, Case, Group
from mutkv.kernels.ties import lowest_argmax
from mutkv.mutation.copy import MutatedPackage, load_copy
from mutkv.mutation.mutant import Mutant
from mutkv.mutation.registry import is_shipped
from mutkv.protocol import Engine, Trace
from mutkv.reference import Engine as ReferenceEngine
from mutkv.weights import load_weights
from mutkv.workloads import Recording, Workload, workload_for

LEAST_SECONDS, PATIENCE = 20.0, 50
"""A mutant may take this long, and this many times as long as the clean run of its group, before it is a timeout."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The clean engine's run of some seeds, shared by all their mutants."""

    configuration: Configuration
    seeds: tuple[int, ...]
    workload: Workload
    weights: dict[str, Tensor]
    engine: Engine
    recording: Recording
    trace: Trace
    full: Tensor
    """Logits of the full path at the observations, float64 ``[R, N, vocab]``."""
    argmax: Tensor
    """The clean cached path's choice at the observations, ``[R, N]``."""
    margin: Tensor
    """Its best logit minus its second best, float64 ``[R, N]``."""
    seconds: float
    """How long both paths took."""


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


def run_group(group: Group, mutants: Mapping[str, Mutant], device: str) -> Iterator[Outcome]:
    """Run all cases of a group; yield one outcome per mutant (and per seed where a mutant fails)."""
    torch.set_num_threads(1)
    with torch.no_grad():
        for seeds, names in blocks(group):
            baseline = run_clean(group.configuration, seeds, device)
            for name in names:
                cases = tuple(case for case in group.cases if case.mutant == name)
                yield from run_cases(cases, mutants.get(name), baseline)


def blocks(group: Group) -> Iterator[tuple[tuple[int, ...], list[str]]]:
    """Yield seeds and the mutants that are pending on just these seeds: one block unless a resume left gaps."""
    seeds_of: dict[str, list[int]] = defaultdict(list)
    for case in group.cases:
        seeds_of[case.mutant].append(case.configuration.seed)
    names_of: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name, seeds in seeds_of.items():
        names_of[tuple(seeds)].append(name)
    yield from names_of.items()


def run_clean(configuration: Configuration, seeds: Sequence[int], device: str) -> Baseline:
    """Run the clean engine along its greedy tokens, then its full path over them."""
    start = perf_counter()
    workload = workload_for(configuration)
    config = configuration.model(device)
    weights = load_weights(config, configuration.weights, configuration.sharpness, tuple(seeds))
    engine = ReferenceEngine(config, weights)
    recording = workload.greedy(engine, workload.prompt(seeds).to(device))
    trace = workload.full(engine, recording.tokens)
    best = recording.logits.topk(2, dim=-1).values
    choice = (lowest_argmax(recording.logits), best[..., 0] - best[..., 1])
    full = workload.observed(trace.logits)
    return Baseline(
        configuration, tuple(seeds), workload, weights, engine, recording, trace, full, *choice, perf_counter() - start
    )


def run_cases(cases: tuple[Case, ...], mutant: Mutant | None, baseline: Baseline) -> Iterator[Outcome]:
    """Run one mutant on all seeds at once; where that fails, seed by seed, so that one seed cannot take the rest."""
    name = cases[0].mutant
    if name == "clean":
        recording = baseline.recording
        yield Outcome(cases, baseline, None, cached=recording.logits, full=baseline.full, recording=recording)
    elif name == "control":
        yield Outcome(cases, baseline, None, cached=run_control(baseline), full=baseline.full)
    else:
        assert mutant is not None, f"the plan has a case of '{name}', which no mutant file defines"
        outcome = attempt(cases, mutant, baseline)
        if outcome.status != "crashed" or len(cases) == 1:  # a timeout would only be waited for again
            yield outcome
        else:
            yield from (run_alone(case, mutant, baseline) for case in cases)
        check_clean(baseline, mutant)


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


def run_alone(case: Case, mutant: Mutant, baseline: Baseline) -> Outcome:
    """Run one mutant on one seed, beside a clean run of that seed."""
    device = baseline.engine.config.device
    return attempt((case,), mutant, run_clean(case.configuration, [case.configuration.seed], device))


def run_control(baseline: Baseline) -> Tensor:
    """Repeat the full path in the other order: what reordering alone does, without a cache."""
    config = baseline.engine.config
    arithmetic = replace(config.arithmetic, prefill_order=config.arithmetic.control_order)
    engine = ReferenceEngine(replace(config, arithmetic=arithmetic), baseline.weights)
    return baseline.workload.observed(baseline.workload.full(engine, baseline.recording.tokens).logits)


def attempt(cases: tuple[Case, ...], mutant: Mutant, baseline: Baseline) -> Outcome:
    """Run one mutant; whatever it raises becomes the outcome ``crashed``, too long a run ``timeout``."""
    limit = LEAST_SECONDS + PATIENCE * baseline.seconds
    package: MutatedPackage | None = None
    try:
        with time_limit(limit):
            package = load_copy(REFERENCE, mutant)
            package.reset_reached()
            recording, full = run_mutant(mutant, package, baseline)
    except BaselineError:
        raise
    except (Exception, SystemExit, CaseTimeout) as error:
        late = isinstance(error, CaseTimeout)
        text = f"over {limit:.1f} s" if late else one_line(error)[:200]
        status, reached = "timeout" if late else "crashed", package is not None and package.reached
        return Outcome(cases, baseline, mutant, status, text, reached=reached)
    return Outcome(cases, baseline, mutant, "ok", None, recording.logits, full, recording, package.reached)


def mutated_engine(package: MutatedPackage, config: ModelConfig, weights: dict[str, Tensor]) -> Engine:
    """Return the engine of a mutated copy, with weights of its own: a mutant may write in place."""
    engine: Engine = package.module("engine").Engine(config, deepcopy(weights))
    return engine


def run_mutant(mutant: Mutant, package: MutatedPackage, baseline: Baseline) -> tuple[Recording, Tensor]:
    """Run the mutated cached path along the clean engine's tokens, and the full path that a checker would see."""
    engine = mutated_engine(package, baseline.engine.config, baseline.weights)
    workload, clean = baseline.workload, baseline.recording
    recording = workload.forced(engine, clean.tokens, clean if mutant.acts == "decode" else None)
    if recording.logits.shape != clean.logits.shape:
        raise ValueError(f"logits of shape {list(recording.logits.shape)} instead of {list(clean.logits.shape)}")
    if mutant.path != "cached":
        return recording, workload.full_stepwise(engine, clean.tokens)
    if not is_shipped(mutant):  # a shipped one was checked with the corpus
        check_path(mutant, workload.observed(workload.full(engine, clean.tokens).logits), baseline.full)
    return recording, baseline.full


def check_path(mutant: Mutant, full: Tensor, clean: Tensor) -> None:
    """Raise BaselineError if a mutant that says it touches the cached path alone changes the full path."""
    if full.shape != clean.shape or not torch.equal(full, clean):
        fix = f"write path = 'both', and see 'mutkv mutants check {mutant.id}'"
        raise BaselineError(f"{mutant.source_path}: path = 'cached', but the full path changes as well: {fix}")
