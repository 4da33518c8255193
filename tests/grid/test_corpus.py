"""The whole corpus on a small grid of every feature: what a check of every step must see, and what it cannot."""

import pytest

from mutkv.detectors.deviation import every_step
from mutkv.detectors.judge import judge
from mutkv.mutation.registry import load_mutants

from .small_grids import plan_of, run_plan, scenario_of

AXES = "seed = [0, 1]\ndepth = 2\nheads = 4\nhead_dim = 4\nvocab = 16\nprompt_length = 6\nsteps = 12"
VARIANTS = """
[[variants]]
kv_heads = 2
window = [0, 4]
capacity = [0, 32]
[[variants]]
positions = "learned"
[[variants]]
positions = "alibi"
window = [0, 4]
[[variants]]
rotation = "read"
rope_scaling = ["none", "linear", "yarn"]
capacity = 20
"""
LONG = "pos-low-precision"  # needs a prompt of 257 tokens


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    names = [name for name in load_mutants() if name != LONG]
    scenario = scenario_of(folder, AXES, names, ("clean", "control"), VARIANTS)
    results = run_plan(plan_of(scenario), folder / "out")
    assert set(results.cases["outcome"]) == {"ok"}
    assert set(results.cases["mutant"]) == {*names, "clean", "control"}
    return judge(results, [every_step]).frame


def test_every_observable_fault_of_the_cached_path_is_flagged(verdicts):
    faults = verdicts.query("kind == 'faulty' and path == 'cached' and observable")
    of_the_cached_path = {m.id for m in load_mutants().values() if m.kind == "faulty" and m.path == "cached"}
    assert set(faults["mutant"]) == of_the_cached_path
    assert faults["flag"].all()


def test_every_fault_is_observable_somewhere(verdicts):
    shown = verdicts.query("kind == 'faulty'").groupby("mutant")["observable"].any()
    assert shown.all()


def test_clean_cases_and_bitwise_equivalents_are_never_flagged_and_deviate_by_nothing(verdicts):
    right = verdicts.query("kind in ('clean', 'equivalent-bitwise')")
    assert right["mutant"].nunique() == 3
    assert not right["flag"].any()
    assert right["score"].max() == 0.0


def test_faults_of_both_paths_that_keep_causality_are_never_flagged(verdicts):
    shared = verdicts.query("kind == 'faulty' and path == 'both'")
    assert set(shared["mutant"]) == {"gqa-tile", "positions-doubled", "unmasked", "window-off-by-one"}
    assert not shared.query("mutant != 'unmasked'")["flag"].any()
    assert shared.query("mutant == 'unmasked'")["flag"].all()


def test_algebraic_equivalents_change_bits_and_no_token(verdicts):
    changed = verdicts.query("kind == 'equivalent-algebraic'")
    assert changed["mutant"].nunique() == 3
    assert not changed["observable"].any()
    assert changed["infected"].any()
