"""Running recorded cases again, for detectors that look inside an engine: a dataset holds logits, not caches.

Everything comes from the case's row and the manifest: configuration, mutant, device. Seeds that are replayed together
are replicas of one engine, as when they were recorded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from mutkv.configuration import CONFIGURATION_COLUMNS, Configuration, ModelConfig
from mutkv.errors import Unsupported, UsageError, unknown_name
from mutkv.grid.clean import Baseline, mutated_engine, run_clean
from mutkv.grid.plan import BENIGN, REFERENCE
from mutkv.grid.results import Results
from mutkv.grid.source import engine_digest
from mutkv.mutation.copy import load_copy
from mutkv.mutation.mutant import Mutant
from mutkv.protocol import Engine, LayerRows, Session, Trace
from mutkv.reference import Engine as ReferenceEngine
from mutkv.schema import explain
from mutkv.weights import load_weights
from mutkv.workloads import Recording


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
    trace: Trace
    """The full path over all tokens."""


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
        workload, clean = baseline.workload, baseline.recording
        engine = build(subject, baseline.engine.config, baseline.weights)
        if isinstance(engine, Cacheless):
            other = workload.full(engine.other, clean.tokens)
            observed = workload.observed(other.logits)
            return Replay(Recording(clean.tokens, observed, (other,), rows_of(other), None, []), baseline.trace)
        if subject.mutant is None:
            return Replay(clean, baseline.trace)
        recording = workload.forced(engine, clean.tokens, clean if subject.mutant.acts == "decode" else None)
        shared = subject.mutant.path == "cached"
        return Replay(recording, baseline.trace if shared else workload.full(engine, clean.tokens))


@lru_cache(maxsize=1)
def clean_run(configuration: Configuration, seeds: tuple[int, ...], device: str) -> Baseline:
    """Run the clean engine; the last run is kept, for the other mutants of its group."""
    return run_clean(configuration, seeds, device)


def rows_of(trace: Trace) -> LayerRows:
    """Return a trace's keys and values as a session would have stored them."""
    return list(zip(trace.keys, trace.values, strict=True))


class Cacheless(ReferenceEngine):
    """The control's engine: its full path as ever, its sessions recompute all tokens in the other order."""

    def __init__(self, config: ModelConfig, weights: dict[str, Tensor]) -> None:
        super().__init__(config, weights)
        arithmetic = replace(config.arithmetic, prefill_order=config.arithmetic.control_order)
        self.other = ReferenceEngine(replace(config, arithmetic=arithmetic), weights)

    def open(self, batch: int = 1, adapter: Any = None, media: Any = None) -> Session:  # type: ignore[override]
        """Return a session without a cache."""
        tokens = torch.empty(self.replicas, batch, 0, dtype=torch.int64, device=self.config.device)
        return CachelessSession(self.other, tokens)


class CachelessSession:
    """A session that remembers tokens alone ``[R, B, length]``; see ``mutkv.protocol.Session``."""

    hit_tokens = 0

    def __init__(self, engine: Engine, tokens: Tensor) -> None:
        self.engine, self.tokens = engine, tokens

    @property
    def length(self) -> int:
        """Tokens that were fed so far."""
        return self.tokens.shape[-1]

    def extend(self, tokens: Tensor, pad: Tensor | None = None) -> Tensor:
        """Add tokens ``[R, B, n]`` and recompute everything; return their logits ``[R, B, n, vocab]``."""
        if pad is not None:
            raise Unsupported("a control has no left padding")
        self.tokens = torch.cat([self.tokens, tokens], dim=-1)
        return self.engine.full(self.tokens)[:, :, self.length - tokens.shape[-1] :]

    def stored(self) -> LayerRows:
        """Return the keys and values of a recompute."""
        return rows_of(self.engine.trace(self.tokens))

    def fork(self) -> "CachelessSession":
        """Return a session that continues from here on its own."""
        return CachelessSession(self.engine, self.tokens)

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` tokens."""
        self.tokens = self.tokens[..., :length]

    def reorder(self, parents: Tensor) -> None:
        """Let row b continue from row ``parents[b]``."""
        self.tokens = self.tokens[:, parents]

    def keep(self, rows: Tensor) -> None:
        """Drop all rows but these."""
        self.tokens = self.tokens[:, rows]

    def shift(self, count: int) -> None:
        """Drop the ``count`` oldest tokens."""
        self.tokens = self.tokens[..., count:]

    def reset(self) -> None:
        """Forget everything."""
        self.crop(0)

    def save(self) -> Tensor:
        """Return the tokens."""
        return self.tokens

    def load(self, state: Tensor) -> None:
        """Continue from tokens that ``save`` returned."""
        self.tokens = state
