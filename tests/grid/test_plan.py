"""Plans: ids that are equal on all machines, and content keys that change with what decides a result alone."""

import hashlib
from pathlib import Path

import pytest

from mutkv.configuration import Configuration
from mutkv.grid import plan as plans
from mutkv.grid.scenario import find_scenario

from .small_grids import mutant_of, plan_of, scenario_of

LINE = ("session.py", "start = self.length")


def keys(plan):
    return {case.mutant: case.content_key for case in plan.cases}


def test_identities_are_the_same_on_every_machine():
    first = plan_of(find_scenario("detectors")).cases[0]
    assert (first.mutant, first.configuration) == ("clean", Configuration())
    assert first.configuration_id == "44136fa355b3678a1146"  # printf '{}' | sha256sum
    assert first.case_id == "2efe52a1d3f35d8187e1"  # printf '44136fa355b3678a1146:clean' | sha256sum


def test_a_configuration_is_known_by_the_columns_that_are_not_default():
    expected = hashlib.sha256(b'{"depth":2,"seed":1}').hexdigest()[:20]
    assert Configuration(seed=1, depth=2).identity() == expected


def test_groups_hold_what_differs_in_seed_and_mutant_alone():
    plan = plan_of(find_scenario("detectors"))
    assert [len(group.cases) for group in plan.groups] == [30] * 8
    for group in plan.groups:
        assert {case.configuration.group for case in group.cases} == {group.configuration}
    assert len({group.key for group in plan.groups}) == 8


def test_a_groups_name_does_not_depend_on_the_order_of_its_cases():
    group = plan_of(find_scenario("detectors")).groups[0]
    assert type(group)(group.configuration, group.cases[::-1]).key == group.key
    assert type(group)(group.configuration, group.cases[1:]).key != group.key


def test_content_keys_change_with_patch_and_labels_of_one_mutant_and_with_the_device_of_all(tmp_path):
    scenario = scenario_of(tmp_path, "seed = 0", ["mine"])
    mine = mutant_in(tmp_path, "start = 0")
    before = keys(plan_of(scenario, {"mine": mine}))
    for changed in (
        mutant_in(tmp_path, "start = 1"),
        mine.model_copy(update={"path": "both"}),
        mine.model_copy(update={"acts": "decode"}),
        mine.model_copy(update={"equivalent": "bitwise"}),
        mine.model_copy(update={"mutant_class": "mask"}),
        mine.model_copy(update={"origin": "seed"}),
    ):
        after = keys(plan_of(scenario, {"mine": changed}))
        assert after["mine"] != before["mine"]
        assert {name: after[name] for name in ("clean", "control")} == {n: before[n] for n in ("clean", "control")}
    told = mine.model_copy(update={"summary": "in other words", "first_visible": "step 2"})
    assert keys(plan_of(scenario, {"mine": told})) == before
    elsewhere = keys(plan_of(scenario, {"mine": mine}, "cuda"))
    assert all(elsewhere[name] != before[name] for name in before)


def mutant_in(folder, becomes):
    place = Path(folder) / "mutants"
    place.mkdir(exist_ok=True)
    return mutant_of(place, "mine", *LINE, becomes)


def test_content_keys_change_with_the_engine(tmp_path, monkeypatch):
    scenario = scenario_of(tmp_path, "seed = 0")
    before = plan_of(scenario)
    monkeypatch.setattr(plans, "engine_digest", lambda: "another engine")
    after = plan_of(scenario)
    assert not set(keys(before).values()) & set(keys(after).values())
    assert [case.case_id for case in before.cases] == [case.case_id for case in after.cases]


@pytest.mark.parametrize("done", [0, 1, 29, 30, 240])
def test_pending_is_what_is_not_done(done):
    plan = plan_of(find_scenario("detectors"))
    keys = [case.content_key for case in plan.cases]
    pending = [case.content_key for group in plan.pending(set(keys[:done])) for case in group.cases]
    assert pending == keys[done:]
    assert all(group.cases for group in plan.pending(set(keys[:done])))
