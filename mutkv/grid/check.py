"""Checking the corpus against itself: every claim of a mutant's file is measured on its witness.

The witness is a configuration on which the mutant must show. What is measured: which path changes, whether an empty
cache matters, the first step that shows, and that what ``hidden_by`` names does not see it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import torch

from mutkv.configuration import Configuration
from mutkv.errors import MutkvError, UsageError, one_line
from mutkv.grid.clean import Baseline, mutated_engine, run_clean
from mutkv.grid.grid import executor_for, prepare
from mutkv.grid.limits import CaseTimeout, time_limit
from mutkv.grid.plan import REFERENCE, Plan, applies, make_plan
from mutkv.grid.records import floors
from mutkv.grid.results import Results, load
from mutkv.grid.scenario import Axes, Scenario
from mutkv.grid.structure import check_structure
from mutkv.mutation.copy import load_copy
from mutkv.mutation.mutant import Mutant
from mutkv.workloads import Layout, Recording, at_observations, full_stepwise, full_traces, record

Judge = Callable[[Results, Sequence[str]], list[str]]
"""Given results and names of detectors, return those that flag a case of a mutant (and raise on unknown names)."""

CHECK_SECONDS = 60.0
LATER = 3
"""``first_visible = "later"`` stands for this step or any after it."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a mutant did on one configuration, beside the clean engine."""

    path: str | None
    """Which path changed at all: cached, full, both, or None."""
    acts: str
    first: str
    """Where the cached path first differs by any amount, in the words of ``first_visible``."""
    observable: bool
    deviation: float
    """Largest difference between mutated and clean logits, on either path."""


def check_mutant(mutant: Mutant, judge: Judge) -> list[str]:
    """Return every claim of the file that does not hold, as one line each; an empty list is a pass."""
    try:
        with time_limit(CHECK_SECONDS):
            return list(problems(mutant, judge))
    except MutkvError as error:
        return [str(error)]
    except CaseTimeout:
        return [f"the witness takes more than {CHECK_SECONDS:g} s"]
    except (Exception, SystemExit) as error:
        return [f"the witness raises {one_line(error)[:200]}"]


def problems(mutant: Mutant, judge: Judge) -> Iterator[str]:
    """Yield the claims that do not hold."""
    witness = mutant.witness_configuration()
    check_structure(witness)
    if not applies(mutant, witness):
        yield f"the witness lacks a feature or workload that the mutant needs: {', '.join(mutant.features)}"
        return
    measured = measure(mutant, witness)
    yield from equivalence_problems(mutant, measured) if mutant.equivalent else visibility_problems(mutant, measured)
    for text, configuration in mutant.hidden_configurations().items():
        check_structure(configuration)
        if measure(mutant, configuration).observable:
            yield f"hidden_by '{text}': the mutant is observable there"
    hidden = mutant.hidden_detectors()
    if hidden:
        flagged = judge_witness(mutant, hidden, judge)
        yield from (f"hidden_by '{name}': this detector flags the witness" for name in flagged)


def equivalence_problems(mutant: Mutant, measured: Measured) -> Iterator[str]:
    """Yield what speaks against an equivalent mutant."""
    if mutant.equivalent == "bitwise" and measured.deviation != 0.0:
        yield f"equivalent = 'bitwise', but the witness deviates by {measured.deviation:g}"
    if measured.observable:
        yield f"equivalent = '{mutant.equivalent}', but the witness is observable ({measured.deviation:g})"


def visibility_problems(mutant: Mutant, measured: Measured) -> Iterator[str]:
    """Yield where a faulty mutant is not what its file says."""
    if not measured.observable:
        yield f"the witness does not show it: largest deviation {measured.deviation:g}, choose another witness"
    if measured.path != mutant.path:
        yield f"path = '{mutant.path}', measured '{measured.path}'"
    if measured.acts != mutant.acts:
        yield f"acts = '{mutant.acts}', measured '{measured.acts}'"
    step = measured.first.removeprefix("step ")
    later = mutant.first_visible == "later" and step.isdigit() and int(step) >= LATER
    if mutant.path != "full" and not later and measured.first != mutant.first_visible:
        yield f"first_visible = '{mutant.first_visible}', measured '{measured.first}'"


@torch.no_grad()
def measure(mutant: Mutant, configuration: Configuration) -> Measured:
    """Run a mutant on one configuration from the start, both paths, beside the clean engine."""
    clean = run_clean(configuration, [configuration.seed], "cpu")
    engine = mutated_engine(load_copy(REFERENCE, mutant), clean.engine.config, clean.weights)
    recording = record(engine, configuration, clean.seeds, clean.recording)
    layout = clean.recording.layout
    cached = (recording.logits - clean.recording.logits).abs().amax(dim=-1)[0]  # [N]
    at_once = at_observations(clean.recording, full_traces(engine, clean.recording))
    stepwise = full_stepwise(engine, clean.recording)
    full = torch.stack([at_once - clean.full, stepwise - clean.full]).abs().amax(dim=-1)
    floor = float(floors(clean)[0])
    shown = full if mutant.path == "full" else cached
    return Measured(
        path_name(bool(cached.any()), bool(full.any())),
        "always" if prefill_differs(recording, clean) else "decode",
        first_visible(cached.cpu().numpy() > 0, layout, configuration.workload),
        bool(shown.max() > floor),
        float(torch.maximum(cached.max(), full.max())),
    )


def first_visible(differs: npt.NDArray[np.bool_], layout: Layout, workload: str) -> str:
    """Return the word for the first observation, in script order, that differs; every request after the first is one.

    In ``chunked`` the first request has one chunk and the others have more.
    """
    if not differs.any():
        return "never"
    place = np.flatnonzero(differs)[np.argmin(layout.order[differs])]
    if layout.request[place]:
        return "second chunk" if workload == "chunked" else "second request"
    step = int(layout.step[differs & (layout.order == layout.order[place])].min())
    return f"step {step}" if step else "prefill"


def path_name(cached: bool, full: bool) -> str | None:
    """Return the schema's word for which paths changed."""
    return {(True, False): "cached", (False, True): "full", (True, True): "both"}.get((cached, full))


def prefill_differs(recording: Recording, clean: Baseline) -> bool:
    """Whether feeding an empty cache gave other logits, or left other rows behind."""
    logits = (recording.traces[0].logits, clean.recording.traces[0].logits)
    layers = zip(recording.prefilled, clean.recording.prefilled, strict=True)
    pairs = [logits, *(pair for left, right in layers for pair in zip(left, right, strict=True))]
    return any(left.shape != other.shape or not left.allclose(other, 0, 0, equal_nan=True) for left, other in pairs)


def witness_plan(mutant: Mutant) -> Plan:
    """Return the plan of a mutant's witness alone: clean, control and the mutant.

    Raises:
        UsageError: the witness cannot exist, or the mutant does not apply to it.
    """
    witness = mutant.witness_configuration()
    check_structure(witness)
    axes = Axes.model_validate(witness.columns())
    scenario = Scenario(name=f"witness-{mutant.id}", summary=f"the witness of {mutant.id}", axes=axes)
    plan = make_plan(scenario, {mutant.id: mutant}, "cpu")
    if plan.unused:
        needs = ", ".join((*mutant.features, *mutant.workloads))
        raise UsageError(f"{mutant.source_path}: witness: lacks one of {needs}, which the mutant needs: add it")
    return plan


def judge_witness(mutant: Mutant, names: Sequence[str], judge: Judge) -> list[str]:
    """Run the witness as a dataset of its own and return which of the detectors flag it."""
    with TemporaryDirectory(prefix="mutkv-") as folder:
        run = prepare(witness_plan(mutant), Path(folder), jobs=1)
        list(run.execute(executor_for(1)))
        return judge(load(folder), names)
