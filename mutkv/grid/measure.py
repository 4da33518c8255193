"""Running one group of a study: the clean engine and every mutant measured by the study's function.

A study has no observations, so that its cases have no labels; what it measured is a table of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace

import numpy as np
import torch

from mutkv.errors import one_line
from mutkv.grid.clean import check_clean, run_clean
from mutkv.grid.limits import CaseTimeout, time_limit
from mutkv.grid.plan import REFERENCE, Case, Group
from mutkv.grid.records import Records, records
from mutkv.grid.run import Outcome, blocks
from mutkv.mutation.copy import MutatedPackage, load_copy
from mutkv.mutation.mutant import Mutant
from mutkv.mutation.registry import is_shipped
from mutkv.reference import Engine as ReferenceEngine
from mutkv.studies import STUDIES, Measurement, Subject
from mutkv.weights import load_weights

LONGEST = 300.0
"""Seconds that a mutant may take; the clean engine has no limit."""


def measure_group(group: Group, mutants: Mapping[str, Mutant], device: str, study: str) -> Iterator[Records]:
    """Measure all cases of a group; yield the rows of one mutant after another."""
    torch.set_num_threads(1)
    with torch.no_grad():
        for seeds, names in blocks(group):
            config, configuration = group.configuration.model(device), group.configuration
            weights = load_weights(config, configuration.weights, configuration.sharpness, seeds)
            for name in names:
                cases = tuple(case for case in group.cases if case.mutant == name)
                subject = Subject(configuration, seeds, config, weights, ReferenceEngine)
                yield measure_cases(cases, mutants.get(name), subject, study)


def measure_cases(cases: tuple[Case, ...], mutant: Mutant | None, subject: Subject, study: str) -> Records:
    """Measure one mutant, or the clean engine, on all seeds at once; what a mutant raises is the outcome."""
    device = subject.config.device
    if mutant is None:
        return measured(Outcome(cases, None, None), list(STUDIES[study](subject)), device)
    baseline = None if is_shipped(mutant) else run_clean(subject.configuration, subject.seeds[:1], device)
    package: MutatedPackage | None = None
    try:
        with time_limit(LONGEST):
            package = load_copy(REFERENCE, mutant)
            package.reset_reached()
            engine = package.module("engine").Engine
            mutated = replace(subject, weights=deepcopy(subject.weights), make_engine=engine)  # it may write in place
            found = list(STUDIES[study](mutated))
            rows = measured(Outcome(cases, None, mutant, reached=package.reached), found, device)
    except (Exception, SystemExit, CaseTimeout) as error:
        late = isinstance(error, CaseTimeout)
        text = f"over {LONGEST:g} s" if late else one_line(error)[:200]
        status, ran = "timeout" if late else "crashed", package is not None and package.reached
        rows = measured(Outcome(cases, None, mutant, status, text, reached=ran), [], device)
    if baseline is not None:
        check_clean(baseline, mutant)
    return rows


def measured(outcome: Outcome, found: Sequence[Measurement], device: str) -> Records:
    """Return the rows of an outcome of R seeds: R cases without observations, and per seed all measurements."""
    cases = records(outcome, device).cases
    if found:
        finite = np.isfinite([measurement.values for measurement in found]).all(axis=0)  # [R]
        cases["outcome"] = np.where(finite, "ok", "nonfinite").tolist()
    rows = [(case_id, each, each.values[seed]) for seed, case_id in enumerate(cases["case_id"]) for each in found]
    return Records(
        cases,
        {},
        {
            "case_id": [case_id for case_id, _, _ in rows],
            "quantity": [each.quantity for _, each, _ in rows],
            "part": [each.part for _, each, _ in rows],
            "value": [float(value) for _, _, value in rows],
        },
    )
