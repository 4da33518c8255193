"""The straightforward program: every case alone, nothing shared. What the grouped runner is compared with.

One case is one engine with one replica: its own weights, its own clean run, the mutant from its first token on, and
the full path recomputed from the tokens at every step. A test holds its records equal to the grouped runner's.
"""

import torch

from mutkv.grid.clean import Baseline, mutated_engine, run_clean
from mutkv.grid.plan import REFERENCE, Case
from mutkv.grid.records import Records, records
from mutkv.grid.run import Outcome
from mutkv.mutation.copy import load_copy
from mutkv.mutation.mutant import Mutant
from mutkv.workloads import full_stepwise, record


@torch.no_grad()
def naive_case(case: Case, mutant: Mutant | None, device: str = "cpu") -> Records:
    """Run one case (a mutant or ``clean``) on its own and return its rows."""
    torch.set_num_threads(1)
    clean = run_clean(case.configuration, [case.configuration.seed], device)
    if mutant is None:
        full = full_stepwise(clean.engine, clean.recording)
        return records(Outcome((case,), clean, None, "ok", None, clean.recording.logits, full, clean.recording), device)
    return records(run_mutant_alone(case, mutant, clean), device)


def run_mutant_alone(case: Case, mutant: Mutant, clean: Baseline) -> Outcome:
    """Run both paths of a mutated engine, sharing nothing."""
    package = load_copy(REFERENCE, mutant)
    package.reset_reached()
    engine = mutated_engine(package, clean.engine.config, clean.weights)
    recording = record(engine, clean.configuration, clean.seeds, clean.recording)
    full = full_stepwise(engine, clean.recording)
    return Outcome((case,), clean, mutant, "ok", None, recording.logits, full, recording, package.reached)
