"""Every shortcut of the runner leaves the records of the plain way: one case, one seed, everything recomputed."""

from dataclasses import replace
from functools import partialmethod

import numpy as np
import pytest
import torch

from mutkv.configuration import Configuration
from mutkv.grid import run
from mutkv.kernels import compiled
from mutkv.kernels.exact import ExactKernel
from mutkv.mutation.copy import load_copy
from mutkv.mutation.registry import load_mutants
from mutkv.reference import Engine
from mutkv.weights import load_weights, prompt_tokens

from .small_grids import logits_of, part_bytes, plan_of, run_plan, scenario_of

AXES = """
seed = [0, 1]
depth = 2
heads = 2
head_dim = 4
vocab = 8
batch = [1, 2]
prompt_length = [0, 3]
steps = 8
"""
VARIANTS = {
    "rope": 'positions = "rope"',
    "learned": 'positions = "learned"\nkv_heads = 1',
    "float32": 'storage = "float32"\nprefill_order = "pairwise"',
    "bfloat16": 'storage = "bfloat16"\naccumulator = "float64"',
}


def naive(configuration, mutant):
    """Run one case of one seed: its own clean run, nothing shared, the full path from its tokens at every step."""
    config = configuration.model()
    weights = load_weights(config, configuration.weights, configuration.sharpness, (configuration.seed,))
    clean, engine = Engine(config, weights), Engine(config, weights)
    if mutant not in ("clean", "control"):
        engine = load_copy("mutkv.reference", load_mutants()[mutant]).module("engine").Engine(config, weights)
    prefill = configuration.prompt_length
    given = prompt_tokens(configuration, configuration.seed, max(prefill, 1))
    tokens = torch.from_numpy(given)[None]
    while tokens.shape[-1] < configuration.tokens:  # greedy, with no cache anywhere
        tokens = torch.cat([tokens, clean.full(tokens)[:, :, -1:].double().argmax(dim=-1)], dim=-1)
    session = engine.open(configuration.batch)
    cached = [session.extend(tokens[..., :prefill])[:, :, -1:]] if prefill else []
    cached += [session.extend(tokens[..., i : i + 1]) for i in range(prefill, configuration.tokens)]
    full = [clean.full(tokens[..., : i + 1])[:, :, -1:] for i in range(max(prefill - 1, 0), configuration.tokens)]
    if mutant == "control":
        other = replace(config, arithmetic=replace(config.arithmetic, prefill_order=config.arithmetic.control_order))
        cached = [
            Engine(other, weights).full(tokens)[:, :, i : i + 1] for i in range(max(prefill - 1, 0), tokens.shape[-1])
        ]
    return [torch.cat(part, dim=2).double().flatten(0, 2).numpy() for part in (cached, full)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_group_gives_the_records_of_a_naive_loop_over_its_cases(tmp_path, variant):
    results = run_plan(plan_of(scenario_of(tmp_path, AXES + VARIANTS[variant])), tmp_path / "out")
    stored = logits_of(results)
    columns = list(Configuration.__dataclass_fields__)
    for case in results.cases.to_dict("records"):
        if (case["seed"] + case["batch"] + case["prompt_length"]) % 2:
            continue  # half of the cases: every seed, batch and prompt, not every combination
        cached, full = naive(Configuration(**{name: case[name] for name in columns}), case["mutant"])
        assert stored[case["case_id"]][0].tobytes() == cached.tobytes(), case["mutant"]
        assert stored[case["case_id"]][1].tobytes() == full.tobytes(), case["mutant"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_plain_kernels_give_the_same_bytes_as_compiled_ones(tmp_path, monkeypatch, variant):
    plan = plan_of(scenario_of(tmp_path, AXES + VARIANTS[variant]))
    run_plan(plan, tmp_path / "compiled")
    monkeypatch.setattr(ExactKernel, "__init__", partialmethod(ExactKernel.__init__, use_compiled=False))
    monkeypatch.setattr(compiled, "product", None)  # calling it would raise
    run_plan(plan, tmp_path / "plain")
    assert part_bytes(tmp_path / "compiled") == part_bytes(tmp_path / "plain")


def test_a_native_record_does_not_depend_on_which_seeds_share_its_group(tmp_path):
    native = 'storage = "float32"\nprefill_order = "native"\n'
    together = run_plan(plan_of(scenario_of(tmp_path, AXES + native)), tmp_path / "together")
    axes = AXES.replace("[0, 1]", "1") + native
    alone = logits_of(run_plan(plan_of(scenario_of(tmp_path, axes)), tmp_path / "alone"))
    shared = logits_of(together)
    assert len(alone) == 40
    for case_id, (cached, full) in alone.items():
        assert np.array_equal(shared[case_id][0], cached)
        assert np.array_equal(shared[case_id][1], full)


@pytest.mark.parametrize("without", [{"acts": "always"}, {"path": "both"}], ids=["clean prefill", "one full pass"])
def test_what_mutants_share_with_the_clean_run_gives_the_bytes_of_computing_it(without, tmp_path, monkeypatch):
    plan = plan_of(scenario_of(tmp_path, AXES))
    run_plan(plan, tmp_path / "shared")
    mutants = {name: mutant.model_copy(update=without) for name, mutant in plan.mutants.items()}
    unshared = run.run_mutant
    monkeypatch.setattr(run, "run_mutant", lambda mutant, *rest: unshared(mutants[mutant.id], *rest))
    run_plan(plan, tmp_path / "alone")
    assert part_bytes(tmp_path / "shared") == part_bytes(tmp_path / "alone")
