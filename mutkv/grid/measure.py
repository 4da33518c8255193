"""Running one group of a study: the clean engine and every mutant measured by the study's function.

A study has no observations, so that its cases have no labels; what it measured is a table of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from time import perf_counter

import numpy as np
import torch

from mutkv.configuration import Configuration
from mutkv.grid.attempt import attempt
from mutkv.grid.clean import check_clean, run_clean
from mutkv.grid.plan import Case, Group
from mutkv.grid.records import Records, records
from mutkv.grid.run import Outcome, blocks
from mutkv.mutation.copy import MutatedPackage
from mutkv.mutation.mutant import Mutant
from mutkv.mutation.registry import is_shipped
from mutkv.reference import Engine as ReferenceEngine
from mutkv.studies import STUDIES, Measurement, Subject
from mutkv.weights import load_weights


def measure_group(group: Group, mutants: Mapping[str, Mutant], device: str, study: str) -> Iterator[Records]:
    """Measure all cases of a group; yield the rows of one mutant after another."""
    torch.set_num_threads(1)
    with torch.no_grad():
        for seeds, names in blocks(group):
            subject = subject_of(group.configuration, seeds, device)
            start = perf_counter()
            clean = list(STUDIES[study].measure(subject))
            seconds = perf_counter() - start
            for name in names:
                cases = tuple(case for case in group.cases if case.mutant == name)
                if name in mutants:
                    yield from measure_cases(cases, mutants[name], study, seconds, device)
                else:
                    yield measured(Outcome(cases, None, None), clean, device)


def subject_of(configuration: Configuration, seeds: tuple[int, ...], device: str) -> Subject:
    """Return the clean engine's subject for some seeds of a group."""
    config = configuration.model(device)
    weights = load_weights(config, configuration.weights, configuration.sharpness, seeds)
    return Subject(configuration, seeds, config, weights, ReferenceEngine)


def measure_cases(
    cases: tuple[Case, ...], mutant: Mutant, study: str, seconds: float, device: str
) -> Iterator[Records]:
    """Measure a mutant on all seeds at once; where that fails, seed by seed, so that one seed cannot take the rest."""
    seeds = tuple(case.configuration.seed for case in cases)
    subject = subject_of(cases[0].configuration.group, seeds, device)
    baseline = None if is_shipped(mutant) else run_clean(subject.configuration, seeds[:1], device)
    done = attempt(mutant, seconds, lambda package: list(STUDIES[study].measure(mutated(subject, package))))
    if baseline is not None:
        check_clean(baseline, mutant)
    if done.status == "crashed" and len(cases) > 1:
        for case in cases:
            yield from measure_cases((case,), mutant, study, seconds, device)
    else:
        outcome = Outcome(cases, None, mutant, done.status, done.error, reached=done.reached)
        yield measured(outcome, done.value or [], device)


def mutated(subject: Subject, package: MutatedPackage) -> Subject:
    """Return the subject with a mutated engine and weights of its own: a mutant may write in place."""
    return replace(subject, weights=deepcopy(subject.weights), make_engine=package.module("engine").Engine)


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
