"""A mutant that crashes, hangs or computes no number is an outcome of just the seeds concerned."""

import numpy as np
import pytest
import torch

from mutkv.configuration import Configuration, ModelConfig
from mutkv.grid import attempt
from mutkv.grid.clean import mutated_engine
from mutkv.grid.plan import REFERENCE
from mutkv.grid.replay import Subject, engine_of
from mutkv.mutation.copy import load_copy
from mutkv.mutation.registry import load_mutants
from mutkv.weights import load_weights
from mutkv.weights.random import random_weights

from .small_grids import logits_of, mutant_of, plan_of, run_plan, scenario_of

SEEDS = 6
AXES = "seed = [0, 1, 2, 3, 4, 5]\nvocab = 8\nprompt_length = 3\nsteps = 4"
START = ("session.py", "start = self.length")
FINAL = ("model.py", 'final = step.kernel.norm(hidden, self.weights["final_norm"])')
LABELS = ["observable", "output_changed", "first_observable_step", "first_changed_step", "floor"]


@pytest.fixture
def spoilt(tmp_path):
    """Seeds whose first weight is positive, and a function that runs a mutant of the given line on all seeds."""
    first = [random_weights(ModelConfig(vocab=8), seed)["embedding"][0, 0].item() for seed in range(SEEDS)]
    seeds = {seed for seed in range(SEEDS) if first[seed] > 0}
    assert 0 < len(seeds) < SEEDS

    def run_with(place, becomes):
        folder = tmp_path / "mutants"
        folder.mkdir()
        mutant = mutant_of(folder, "spoilt", *place, becomes)
        if place is FINAL:
            mutant = mutant.model_copy(update={"path": "both"})
        scenario = scenario_of(tmp_path, AXES, ["spoilt", "stale"])
        stale = plan_of(scenario_of(tmp_path, AXES, ["stale"]))
        plan = plan_of(scenario, {"spoilt": mutant, **stale.mutants})
        return run_plan(plan, tmp_path / "out")

    return seeds, run_with


def outcomes(results):
    cases = results.cases[results.cases["mutant"] == "spoilt"].set_index("seed")
    return cases.sort_index()


def test_a_crash_on_some_seeds_is_theirs_alone(spoilt):
    seeds, run_with = spoilt
    results = run_with(
        START, "start = self.length // int(self.engine.decoder.weights['embedding'][:, 0, 0].max() <= 0)"
    )
    cases = outcomes(results)
    assert set(cases.index[cases["outcome"] == "crashed"]) == seeds
    crashed, fine = cases[cases["outcome"] == "crashed"], cases[cases["outcome"] == "ok"]
    assert (crashed["error"] == "ZeroDivisionError: integer division or modulo by zero").all()
    assert crashed[[*LABELS, "infected"]].isna().all(axis=None)
    assert crashed["reached"].all()
    assert len(fine) == SEEDS - len(seeds)
    assert not fine["observable"].any()  # the line divides by one there
    assert results.completeness.failed == len(seeds)
    assert (results.completeness.planned, results.completeness.missing) == (4 * SEEDS, 0)
    assert set(results.observations["case_id"]).isdisjoint(crashed["case_id"])


def test_a_crash_leaves_the_other_mutants_bytes_as_they_are(spoilt, tmp_path):
    _, run_with = spoilt
    stored = logits_of(run_with(START, "raise LookupError('many\\nlines   of\\ttext ' * 40)"))
    plan = plan_of(scenario_of(tmp_path, AXES, ["stale"]))
    for case_id, (cached, full) in logits_of(run_plan(plan, tmp_path / "alone")).items():
        assert np.array_equal(stored[case_id][0], cached)
        assert np.array_equal(stored[case_id][1], full)


def test_the_error_text_is_one_short_line(spoilt):
    _, run_with = spoilt
    errors = outcomes(run_with(START, "raise LookupError('many\\nlines   of\\ttext ' * 40)"))["error"]
    assert len(errors) == SEEDS
    assert errors.str.startswith("LookupError: many lines of text many").all()
    assert (errors.str.len() <= 200).all()


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_logits_that_are_no_numbers_are_nonfinite_for_just_their_seeds(spoilt, value):
    seeds, run_with = spoilt
    spoil = f"torch.where(self.weights['embedding'][:, :1, :1, None] > 0, float('{value}'), 0.0)"
    results = run_with(FINAL, f"final = step.kernel.norm(hidden, self.weights['final_norm']) + {spoil}")
    cases = outcomes(results)
    nonfinite, fine = cases[cases["outcome"] == "nonfinite"], cases[cases["outcome"] == "ok"]
    assert set(nonfinite.index) == seeds
    assert len(fine) == SEEDS - len(seeds)
    assert nonfinite[LABELS].isna().all(axis=None)
    assert not fine["observable"].any()
    assert results.completeness.failed == len(seeds)
    logits = logits_of(results)
    assert not any(np.isfinite(logits[case_id][0]).all() for case_id in nonfinite["case_id"])
    assert all(np.isfinite(logits[case_id][0]).all() for case_id in fine["case_id"])


def test_logits_of_another_shape_are_a_crash_that_names_both_shapes(spoilt):
    _, run_with = spoilt
    cases = outcomes(run_with(FINAL, "final = step.kernel.norm(hidden, self.weights['final_norm']).repeat(1, 2, 1, 1)"))
    assert (cases["outcome"] == "crashed").all()
    assert (cases["error"] == "ValueError: logits of shape [1, 2, 1, 8] instead of [1, 1, 1, 8]").all()


def test_a_mutant_that_never_ends_is_a_timeout(tmp_path, monkeypatch):
    monkeypatch.setattr(attempt, "LEAST_SECONDS", 0.2)
    monkeypatch.setattr(attempt, "PATIENCE", 0)
    mutant = mutant_of(tmp_path, "endless", *START, "while True: start = self.length")
    scenario = scenario_of(tmp_path, "vocab = 8\nsteps = 2", ["endless"])
    cases = run_plan(plan_of(scenario, {"endless": mutant}), tmp_path / "out").cases.set_index("mutant")
    assert cases["outcome"].to_dict() == {"clean": "ok", "control": "ok", "endless": "timeout"}
    assert cases.loc["endless", "error"] == "over 0.2 s"
    assert cases.loc["endless", "reached"]


def test_a_line_that_is_never_run_is_not_reached_and_infects_nothing(tmp_path):
    refuse = 'raise Unsupported("the reference engine cannot shift in this configuration")'
    mutant = mutant_of(tmp_path, "unreached", "session.py", refuse, "pass")
    scenario = scenario_of(tmp_path, "vocab = 8\nsteps = 2", ["unreached"])
    cases = run_plan(plan_of(scenario, {"unreached": mutant}), tmp_path / "out").cases.set_index("mutant")
    case = cases.loc["unreached"]
    assert (case["reached"], case["infected"], case["observable"], case["outcome"]) == (False, False, False, "ok")


PAST = ("model.py", "past = step.cache.read(source)  # [2, R, B, past, kv_heads, head_dim]")


@pytest.mark.parametrize(
    ("place", "becomes", "acts"),
    [
        (PAST, "past = step.cache.read(source).mul_(1.5)", "decode"),
        (START, "start = self.engine.decoder.weights['final_norm'].mul_(2) and 0", "always"),
    ],
    ids=["stored rows", "weights"],
)
def test_a_mutant_that_writes_in_place_leaves_the_others_bytes_as_they_are(place, becomes, acts, tmp_path):
    mutant = mutant_of(tmp_path, "a-first", *place, becomes).model_copy(update={"acts": acts})
    axes = "vocab = 8\nsteps = 4"
    alone = plan_of(scenario_of(tmp_path, axes, ["stale"]))
    together = plan_of(scenario_of(tmp_path, axes, ["a-first", "stale"]), {"a-first": mutant, **alone.mutants})
    stored = logits_of(run_plan(together, tmp_path / "together"))
    for case_id, (cached, _) in logits_of(run_plan(alone, tmp_path / "alone")).items():
        assert np.array_equal(stored[case_id][0], cached)


@pytest.mark.parametrize("make", ["run", "replay"])
def test_a_mutated_engine_has_weights_of_its_own(make):
    configuration, mutant = Configuration(), load_mutants()["stale"]
    config = configuration.model()
    shared = load_weights(config, "random", 1.0, (0,))
    before = shared["final_norm"].clone()
    if make == "run":
        engine = mutated_engine(load_copy(REFERENCE, mutant), config, shared)
    else:
        engine = engine_of(Subject("stale", mutant, "cpu"), configuration)
    engine.decoder.weights["final_norm"].mul_(2)
    assert torch.equal(load_weights(config, "random", 1.0, (0,))["final_norm"], before)
