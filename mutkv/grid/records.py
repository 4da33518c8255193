"""From an outcome to rows: the truth about each case and each observation, as the dataset's columns.

Deviations are between the two paths of the engine under test; the labels compare its cached path with the clean
engine's. Everything is computed for all seeds at once.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mutkv.configuration import Configuration
from mutkv.grid.clean import Baseline
from mutkv.grid.infection import exactness, infection
from mutkv.grid.run import Outcome
from mutkv.kernels.ties import lowest_argmax
from mutkv.workloads import Layout

Array = npt.NDArray[Any]

FLOORS = {"float64": 1e-9, "float32": 1e-4}
"""Below this a changed logit is not called observable; other formats: twice the clean case's own deviation."""


@dataclass(frozen=True, slots=True)
class Records:
    """Columns of R cases, and of their R × N observations (case by case) or of what a study measured in them."""

    cases: dict[str, Any]
    observations: dict[str, Array]
    measurements: dict[str, Any] = field(default_factory=dict)


def records(outcome: Outcome, device: str) -> Records:
    """Return the dataset rows of an outcome."""
    count = len(outcome.cases)
    columns: dict[str, Any] = identity_columns(outcome, device) | {"outcome": [outcome.status] * count}
    columns |= {"error": [outcome.error] * count, "reached": [outcome.reached] * count}
    baseline = outcome.baseline
    if baseline is None or outcome.cached is None or outcome.full is None:
        return Records(columns | unknown_truth(count), {})
    deviation = (outcome.cached - outcome.full).abs().amax(dim=-1)  # [R, N]
    finite = (outcome.cached.isfinite() & outcome.full.isfinite()).all(dim=-1).all(dim=-1)
    columns["outcome"] = ["ok" if ok else "nonfinite" for ok in finite.tolist()]
    columns |= mask(truth(outcome, baseline), finite) | infection(outcome, baseline)
    columns |= exactness(outcome, baseline) | {"observations": [deviation.shape[1]] * count}
    return Records(columns, observation_columns(outcome.cached, outcome.full, deviation, baseline))


def identity_columns(outcome: Outcome, device: str) -> dict[str, Any]:
    """Return what a case is, before it is run."""
    cases, mutant = outcome.cases, outcome.mutant
    configuration = cases[0].configuration
    columns: dict[str, Any] = {name: [value] * len(cases) for name, value in configuration.columns().items()}
    columns["seed"] = [case.configuration.seed for case in cases]
    for name in ("case_id", "configuration_id", "content_key", "mutant"):
        columns[name] = [getattr(case, name) for case in cases]
    about = {
        "mutant_class": mutant and mutant.mutant_class,
        "kind": mutant.kind if mutant else benign_kind(cases[0].mutant, configuration),
        "origin": mutant and mutant.origin,
        "path": mutant and mutant.path,
        "equivalent": mutant and mutant.equivalent,
        "device": device,
    }
    return columns | {name: [value] * len(cases) for name, value in about.items()}


def benign_kind(name: str, configuration: Configuration) -> str:
    """Return the kind of a case without a mutant."""
    if name == "control":
        return "control"
    arithmetic = configuration.arithmetic
    return "clean-native" if arithmetic.native else "clean-split" if arithmetic.split else "clean"


def truth(outcome: Outcome, baseline: Baseline) -> dict[str, Any]:
    """Return the labels of R cases: against the clean cached path, at every observation."""
    layout, clean, cached = baseline.recording.layout, baseline.recording.logits, needed(outcome.cached)
    floor = floors(baseline)
    observable = (cached - clean).abs().amax(dim=-1) > floor[:, None]  # [R, N]
    changed = lowest_argmax(cached) != baseline.argmax
    changed &= torch.from_numpy(layout.emitted).to(changed.device)
    return {
        "floor": floor.tolist(),
        "observable": observable.any(dim=1).tolist(),
        "output_changed": (changed.any(dim=1) | other_answer(outcome, baseline)).tolist(),
        **first("observable", observable, layout),
        **first("changed", changed, layout),
    }


def other_answer(outcome: Outcome, baseline: Baseline) -> Tensor:
    """Return per seed whether a search found another answer than the clean engine's, ``[R]``; it emits no step."""
    clean = baseline.recording.answer
    if clean is None or outcome.answer is None:
        return torch.zeros(len(outcome.cases), dtype=torch.bool)
    return (outcome.answer != clean).any(dim=1)


def needed(logits: Tensor | None) -> Tensor:
    """Return logits that an outcome has."""
    assert logits is not None
    return logits


def floors(baseline: Baseline) -> Tensor:
    """Return each seed's floor, float64 ``[R]``."""
    own = (baseline.recording.logits - baseline.full).abs().amax(dim=(1, 2))
    fixed = FLOORS.get(baseline.engine.config.arithmetic.storage)
    return 2 * own if fixed is None else torch.full_like(own, fixed)


def first(what: str, flags: Tensor, layout: Layout) -> dict[str, Any]:
    """Return request and step of each case's first flagged observation, None where there is none."""
    found = flags.any(dim=1).tolist()
    order = np.lexsort((layout.row, layout.step, layout.order))  # script order: a call feeds all rows
    index = order[flags.cpu().numpy()[:, order].argmax(axis=1)]
    return {
        f"first_{what}_{part}": [int(value) if ok else None for value, ok in zip(values[index], found, strict=True)]
        for part, values in (("request", layout.request), ("step", layout.step))
    }


def mask(columns: dict[str, Any], finite: Tensor) -> dict[str, Any]:
    """Leave out the labels of cases whose logits are not finite: they are an outcome of their own."""
    keep = finite.tolist()
    return {name: [v if ok else None for v, ok in zip(values, keep, strict=True)] for name, values in columns.items()}


def unknown_truth(count: int) -> dict[str, Any]:
    """Return the labels of cases that gave no logits."""
    columns: dict[str, Any] = {"observations": [0] * count}
    names = ("floor", "observable", "output_changed", "infected", "first_infected_layer")
    firsts = (f"first_{what}_{part}" for what in ("observable", "changed") for part in ("request", "step"))
    return columns | {name: [None] * count for name in (*names, *firsts, "kv_max_abs", "attended_max_abs")}


def observation_columns(cached: Tensor, full: Tensor, deviation: Tensor, baseline: Baseline) -> dict[str, Array]:
    """Return R × N rows, case by case."""
    layout = baseline.recording.layout
    per_seed = {
        "forced_token": baseline.recording.forced_tokens,
        "clean_argmax": baseline.argmax,
        "clean_margin": baseline.margin,
        "max_abs": deviation,
        "argmax_cached": lowest_argmax(cached),
        "argmax_full": lowest_argmax(full),
        "logits_cached": cached,
        "logits_full": full,
    }
    shared = {name: getattr(layout, name) for name in ("request", "row", "step", "position", "emitted")}
    return {
        **{name: np.tile(values, len(cached)) for name, values in shared.items()},
        **{name: values.flatten(0, 1).cpu().numpy() for name, values in per_seed.items()},
    }
