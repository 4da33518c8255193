"""The plan: every case of a scenario, fixed before anything runs, with the ids that resume and scoring rely on."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mutkv.configuration import Configuration, short_hash
from mutkv.errors import UsageError
from mutkv.grid.scenario import Scenario
from mutkv.grid.source import engine_digest
from mutkv.mutation.mutant import Mutant
from mutkv.mutation.patch import diff
from mutkv.mutation.registry import find

BENIGN = ("clean", "control")
REFERENCE = "mutkv.reference"
"""The package that mutants of a grid are applied to."""


@dataclass(frozen=True, slots=True)
class Case:
    """One configuration with one mutant (or ``clean`` or ``control``)."""

    configuration: Configuration
    mutant: str
    configuration_id: str
    case_id: str
    content_key: str


@dataclass(frozen=True, slots=True)
class Group:
    """Cases that differ in seed and mutant alone, and so can be run as replicas of one engine."""

    configuration: Configuration
    cases: tuple[Case, ...]

    @property
    def key(self) -> str:
        """A name for this set of cases: a hash of their content keys."""
        keys = "".join(sorted(case.content_key for case in self.cases))
        return short_hash(keys)


@dataclass(frozen=True)
class Plan:
    """All cases of a scenario on a device, in order."""

    scenario: Scenario
    device: str
    mutants: Mapping[str, Mutant]
    groups: tuple[Group, ...]

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """Every case, group by group."""
        return tuple(case for group in self.groups for case in group.cases)

    @property
    def unused(self) -> list[str]:
        """Mutants that no configuration has the features or the workload for."""
        used = {case.mutant for case in self.cases}
        return [name for name in self.mutants if name not in used]

    def pending(self, done: set[str]) -> tuple[Group, ...]:
        """Return the groups, reduced to cases whose content key is not in ``done``; empty groups are left out."""
        reduced = (
            replace(group, cases=tuple(case for case in group.cases if case.content_key not in done))
            for group in self.groups
        )
        return tuple(group for group in reduced if group.cases)

    def document(self) -> dict[str, Any]:
        """Return the plan as JSON data: what ``plan.json`` holds."""
        groups = [
            {"configuration": group.configuration.columns(), "cases": [case_entry(case) for case in group.cases]}
            for group in self.groups
        ]
        scenario = self.scenario
        about: dict[str, Any] = {"scenario": scenario.name, "table": scenario.study or scenario.table}
        about |= {"study": scenario.study, "device": self.device}
        mutants = {name: mutant.model_dump(mode="json", by_alias=True) for name, mutant in self.mutants.items()}
        about |= {"engine_digest": engine_digest(), "cases": len(self.cases)}
        return about | {"mutants": mutants, "groups": groups}


def case_entry(case: Case) -> list[Any]:
    """Return a case as the plan file lists it: seed, mutant, case id, content key."""
    return [case.configuration.seed, case.mutant, case.case_id, case.content_key]


def select_mutants(
    scenario: Scenario, shipped: Mapping[str, Mutant], loaded: Mapping[str, Mutant]
) -> dict[str, Mutant]:
    """Return the mutants that a scenario names, in its order, then all that the user added to the shipped ones."""
    named = {name: find(loaded, name) for name in scenario.mutants}
    added = {name: mutant for name, mutant in loaded.items() if name not in shipped and name not in named}
    return named | added


def make_plan(scenario: Scenario, mutants: Mapping[str, Mutant], device: str) -> Plan:
    """Lay out all cases of a scenario; mutants that a configuration has no feature for are left out there."""
    by_group: dict[Configuration, list[Configuration]] = defaultdict(list)
    for configuration in scenario.configurations():
        by_group[configuration.group].append(configuration)
    for mutant in mutants.values():
        diff(mutant, REFERENCE)  # a line that does not fit is the user's to mend, before anything is written
    key_of = content_keys(mutants, device, scenario.study)
    groups = []
    for group, configurations in by_group.items():
        names = [*scenario.benign, *(name for name, mutant in mutants.items() if applies(mutant, group))]
        groups.append(Group(group, tuple(make_cases(configurations, names, key_of))))
    plan = Plan(scenario, device, dict(mutants), tuple(groups))
    if not plan.cases:
        raise UsageError(f"{scenario.source_path}: no case to run: name mutants that apply, or benign = ['clean']")
    return plan


def make_cases(
    configurations: Sequence[Configuration], names: Sequence[str], key_of: Mapping[str, str]
) -> Iterator[Case]:
    """Yield the cases of one group, mutant by mutant, seeds inside."""
    identities = [configuration.identity() for configuration in configurations]
    for name in names:
        for configuration, identity in zip(configurations, identities, strict=True):
            case_id = short_hash(f"{identity}:{name}")
            yield Case(configuration, name, identity, case_id, short_hash(f"{case_id}:{key_of[name]}"))


def content_keys(mutants: Mapping[str, Mutant], device: str, study: str | None = None) -> dict[str, str]:
    """Return per mutant what decides its rows beside the configuration: patch, labels, engine, torch, device, study."""
    engine = f"{engine_digest()}:{study}" if study else engine_digest()
    patches = dict.fromkeys(BENIGN, "")
    for name, mutant in mutants.items():
        recorded = (mutant.acts, mutant.path, mutant.equivalent, mutant.mutant_class, mutant.origin)
        patches[name] = f"{recorded}:{mutant.patch_for(REFERENCE).model_dump_json()}"
    return {name: short_hash(f"{engine}:{device}:{patch}") for name, patch in patches.items()}


def applies(mutant: Mutant, configuration: Configuration) -> bool:
    """Whether this configuration has the workload and the features that the mutant needs."""
    return configuration.workload in mutant.workloads and features_of(configuration).issuperset(mutant.features)


def features_of(configuration: Configuration) -> set[str]:
    """Return what a configuration has that a mutant may need."""
    optional = {
        "gqa": configuration.kv_heads < configuration.heads,
        "window": configuration.window > 0,
        "static": configuration.capacity > 0,
        "ring": configuration.ring,
        "paged": configuration.block > 0,
        "shared-layers": configuration.sharing > 1,
        "adapters": configuration.adapters > 0,
        "media": configuration.media > 0,
        "rotate-on-read": configuration.rotation == "read",
        configuration.rope_scaling: configuration.rope_scaling != "none",
    }
    return {configuration.positions, *(name for name, there in optional.items() if there)}
