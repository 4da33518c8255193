"""Running recorded cases again, for detectors that look inside an engine: a dataset holds logits, not caches.

Everything comes from the case's row and the manifest: configuration, mutant, device. Seeds that are replayed together
are replicas of one engine, as when they were recorded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from mutkv.configuration import CONFIGURATION_COLUMNS, Configuration, ModelConfig
from mutkv.errors import UsageError, unknown_name
from mutkv.grid.clean import Baseline, mutated_engine, run_clean, run_control
from mutkv.grid.control import Cacheless
from mutkv.grid.plan import BENIGN, REFERENCE
from mutkv.grid.results import Results
from mutkv.grid.source import engine_digest
from mutkv.mutation.copy import load_copy
from mutkv.mutation.mutant import Mutant
from mutkv.protocol import Engine, Trace
from mutkv.reference import Engine as ReferenceEngine
from mutkv.schema import explain
from mutkv.weights import load_weights
from mutkv.workloads import Recording, full_traces, record


@dataclass(frozen=True, slots=True)
class Subject:
    """What is replayed: ``clean``, ``control`` or a mutant, on a device."""

    name: str
    mutant: Mutant | None
    device: str


@dataclass(frozen=True, slots=True)
class Replay:
    """What both paths of R seeds did; a control's cached path is the full path in the other order."""

    recording: Recording
    traces: tuple[Trace, ...]
    """The full path over each of its conversations."""


def check_engine(results: Results) -> None:
    """Raise UsageError where the results are those of another engine than the present one."""
    if results.plan["engine_digest"] != engine_digest():
        fix = "run 'mutkv grid run' again, or use detectors that need text, logprobs or logits"
        raise UsageError(f"{results.folder}: recorded with another engine or torch, cases cannot be run again: {fix}")


def configuration_of(row: Mapping[Any, Any]) -> Configuration:
    """Return the configuration of a row of ``cases``."""
    return Configuration(**{name: row[name] for name in CONFIGURATION_COLUMNS})


def subject_of(results: Results, name: str, device: str) -> Subject:
    """Return what ran in a case, by its columns ``mutant`` and ``device``.

    Raises:
        UsageError: the manifest has no such mutant, or this machine has no such device.
    """
    if device.startswith("cuda") and not torch.cuda.is_available():
        fix = "judge there, or use detectors that need text, logprobs or logits"
        raise UsageError(f"{results.folder}: recorded on {device}, which is not on this machine: {fix}")
    return Subject(name, None if name in BENIGN else recorded_mutant(results, name), device)


def recorded_mutant(results: Results, name: str) -> Mutant:
    """Return a mutant as it was when the results were made, whatever its file says today."""
    recorded = results.plan["mutants"]
    if name not in recorded:
        raise UsageError(f"{results.folder / 'plan.json'}: {unknown_name('mutant', name, recorded)}")
    try:
        return Mutant.model_validate(recorded[name])
    except ValidationError as error:
        raise UsageError(f"{results.folder / 'plan.json'}: mutant '{name}': {explain(error)}") from None


def engine_of(subject: Subject, configuration: Configuration) -> Engine:
    """Return the engine under test of one case: one replica, with the mutant applied by copy."""
    config = configuration.model(subject.device)
    weights = load_weights(config, configuration.weights, configuration.sharpness, (configuration.seed,))
    return build(subject, config, weights)


def build(subject: Subject, config: ModelConfig, weights: dict[str, Tensor]) -> Engine:
    """Return the engine of a subject with these weights."""
    if subject.name == "control":
        return Cacheless(config, weights)
    if subject.mutant is None:
        return ReferenceEngine(config, weights)
    return mutated_engine(load_copy(REFERENCE, subject.mutant), config, weights)


def replay(subject: Subject, configuration: Configuration, seeds: tuple[int, ...]) -> Replay:
    """Run both paths of a subject on all seeds of a group at once, along the clean engine's tokens."""
    with torch.no_grad():
        baseline = clean_run(configuration.group, seeds, subject.device)
        clean = baseline.recording
        if subject.name == "control":
            return Replay(run_control(baseline), baseline.traces)
        if subject.mutant is None:
            return Replay(clean, baseline.traces)
        engine = build(subject, baseline.engine.config, baseline.weights)
        recording = record(engine, baseline.configuration, seeds, clean, subject.mutant.acts == "decode")
        shared = subject.mutant.path == "cached"
        return Replay(recording, baseline.traces if shared else full_traces(engine, clean))


@lru_cache(maxsize=1)
def clean_run(configuration: Configuration, seeds: tuple[int, ...], device: str) -> Baseline:
    """Run the clean engine; the last run is kept, for the other mutants of its group."""
    return run_clean(configuration, seeds, device)
