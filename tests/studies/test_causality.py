"""What the causality study measures, against attention written here, the dataset's labels and another detector."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's convention
from hypothesis import given, settings
from hypothesis import strategies as st

from mutkv.configuration import Configuration
from mutkv.detectors import find_detector
from mutkv.grid.clean import mutated_engine, run_clean
from mutkv.mutation.copy import load_copy
from mutkv.mutation.registry import load_mutants
from mutkv.reference import Engine
from mutkv.studies.causality import measure
from mutkv.studies.study import Subject
from mutkv.weights import load_weights
from tests.detectors.datasets import make_dataset, scores
from tests.grid.small_grids import EIGHT, mutant_of
from tests.reference.engines import structures
from tests.reference.test_model import rope

SEEDS = (0, 1)
DEEP = Configuration(depth=3, head_dim=4, vocab=8, prompt_length=3, steps=8)
PARTS = ("residual", "keys", "values")
QUANTITIES = [*(f"append: {part}" for part in PARTS), *(f"cache: {part}" for part in PARTS), "infection"]
SHIPPED = load_mutants()


@torch.no_grad()
def measured(configuration, make_engine=Engine, seeds=SEEDS):
    """Return the figures ``[layer][seed]`` by quantity, layers in order."""
    config = configuration.model()
    weights = load_weights(config, configuration.weights, configuration.sharpness, seeds)
    found = {}
    for each in measure(Subject(configuration, seeds, config, weights, make_engine)):
        figures = found.setdefault(each.quantity, [])
        figures.append(list(each.values))
        assert each.part == f"layer {len(figures)}"
    assert list(found) == QUANTITIES
    assert all([len(values) for values in figures] == [len(seeds)] * config.depth for figures in found.values())
    return found


def engine_of(mutant):
    """Return what builds the engine of a mutant."""
    return lambda config, weights: mutated_engine(load_copy("mutkv.reference", mutant), config, weights)


def wrong_from(figures):
    """Return the first layer, from 1, in which every seed's figure is above 0; all seeds' figures before must be 0."""
    for layer, values in enumerate(figures, start=1):
        if any(values):
            assert all(value > 0 for value in values)
            return layer
    return None


def onsets(configuration, mutant):
    return {quantity: wrong_from(figures) for quantity, figures in measured(configuration, engine_of(mutant)).items()}


@settings(max_examples=25)
@given(structures(), st.integers(0, 4), st.integers(0, 4), st.integers(1, 2))
def test_appending_a_token_changes_nothing_earlier_and_the_cache_is_exact_in_every_layer(config, prompt, steps, batch):
    structure = {name: getattr(config, name) for name in ("depth", "heads", "kv_heads", "head_dim", "vocab")}
    arithmetic = {name: getattr(config.arithmetic, name) for name in config.arithmetic.__slots__}
    script = {"prompt_length": prompt, "steps": max(steps, 1 - prompt), "batch": batch}
    found = measured(Configuration(**structure, **arithmetic, **script, positions=config.positions))
    assert all(value == 0.0 for figures in found.values() for values in figures for value in values)


@pytest.mark.parametrize("positions", ["rope", "learned"])
@pytest.mark.parametrize("prompt_length", [2, 5])
def test_without_the_mask_information_flows_back_from_layer_2(positions, prompt_length):
    found = onsets(replace(DEEP, positions=positions, prompt_length=prompt_length), SHIPPED["unmasked"])
    assert found == {
        "append: residual": 1,
        "append: keys": 2,
        "append: values": 2,
        "cache: residual": 2,
        "cache: keys": 2,
        "cache: values": 2,
        "infection": 1,
    }


def test_without_the_mask_a_single_layer_keeps_an_exact_cache():
    found = onsets(replace(DEEP, depth=1), SHIPPED["unmasked"])
    assert [found[f"cache: {part}"] for part in PARTS] == [None] * 3
    assert [found[f"append: {part}"] for part in PARTS] == [1, None, None]


def plain(config, weights, tokens, allowed):
    """Return per layer (residual, keys, values, attended) of tokens ``[T]`` under a mask ``[T, T]``, ``[T, ...]``."""
    length, width = len(tokens), config.width
    x = weights["embedding"][tokens]
    if config.positions == "learned":
        x = x + weights["positions"][:length]
    found = []
    for layer in range(config.depth):
        part = {name.split(".")[-1]: w for name, w in weights.items() if name.startswith(f"layers.{layer}.")}
        normed = F.rms_norm(x, (width,), part["attention_norm"], 1e-6)
        q, k, v = (y.view(length, -1, config.head_dim).transpose(0, 1) for y in (normed @ part["qkv"]).split(width, -1))
        if config.positions == "rope":
            q, k = rope(q), rope(k)
        scores = (q @ k.transpose(1, 2) / math.sqrt(config.head_dim)).masked_fill(~allowed, -torch.inf)
        attended = (scores.softmax(-1) @ v).transpose(0, 1).reshape(length, width)
        x = x + attended @ part["output"]
        x = x + F.silu(F.rms_norm(x, (width,), part["mlp_norm"], 1e-6) @ part["up"]) @ part["down"]
        found.append((x, k.transpose(0, 1), v.transpose(0, 1), attended))
    return found


def expected(configuration, tokens, weights):
    """Return the figures ``[layer]`` by quantity of an engine without a mask, on one seed.

    Its cached path is a full path in which a prompt sees all of itself and a later token all before it.
    """
    total, prompt = len(tokens), configuration.prompt_length
    index = torch.arange(total)
    causal = index <= index[:, None]
    runs = {
        length: plain(configuration.model(), weights, tokens[:length], torch.ones(length, length, dtype=torch.bool))
        for length in range(prompt, total + 1)
    }
    cached = plain(configuration.model(), weights, tokens, causal | (index < prompt))
    clean = plain(configuration.model(), weights, tokens, causal)
    figures = {}
    for layer in range(configuration.depth):
        for part, name in enumerate(PARTS):
            moved = [runs[n + 1][layer][part][:n] - runs[n][layer][part] for n in range(prompt, total)]
            figures.setdefault(f"append: {name}", []).append(max(float(change.abs().max()) for change in moved))
            last = [runs[n][layer][0][-1] - cached[layer][0][n - 1] for n in range(prompt + 1, total + 1)]
            kept = last if name == "residual" else [runs[total][layer][part] - cached[layer][part]]
            figures.setdefault(f"cache: {name}", []).append(max(float(change.abs().max()) for change in kept))
        pairs = zip(cached[layer][1:], clean[layer][1:], strict=True)
        figures.setdefault("infection", []).append(max(float((left - right).abs().max()) for left, right in pairs))
    return figures


@torch.no_grad()
@pytest.mark.parametrize("positions", ["rope", "learned"])
def test_every_figure_of_an_unmasked_engine_is_that_of_plain_attention(positions):
    configuration = replace(DEEP, positions=positions)
    found = measured(configuration, engine_of(SHIPPED["unmasked"]))
    clean = run_clean(configuration, SEEDS, "cpu")
    for seed in SEEDS:
        weights = {name: tensor[seed] for name, tensor in clean.weights.items()}
        truth = expected(configuration, clean.recording.conversations[0].tokens[seed, 0], weights)
        for quantity in QUANTITIES:
            assert [values[seed] for values in found[quantity]] == pytest.approx(truth[quantity], rel=0, abs=1e-12)


@pytest.fixture(scope="module", params=["rope", "learned"])
def dataset(request, tmp_path_factory):
    """All mutants that apply, on DEEP, as the grid records them; and their figures by (mutant, quantity)."""
    names = [name for name in (*EIGHT, "unmasked") if name != "prerot" or request.param == "rope"]
    folder = tmp_path_factory.mktemp(request.param)
    results = make_dataset(folder, names, seed=list(SEEDS), depth=3, positions=request.param)
    found = {name: measured(replace(DEEP, positions=request.param), engine_of(SHIPPED[name])) for name in names}
    cases = results.cases[results.cases["mutant"].isin(names)]
    assert len(cases) == len(SEEDS) * len(names)
    return results, cases, found


def test_the_first_layer_with_a_difference_is_the_datasets_first_infected_layer(dataset):
    _, cases, found = dataset
    layers = set()
    for case in cases.itertuples():
        figures = [values[case.seed] for values in found[case.mutant]["infection"]]
        first = next(layer for layer, value in enumerate(figures, start=1) if value > 0)
        assert first == case.first_infected_layer
        assert (case.mutant, first) == (case.mutant, 3 if case.mutant == "prerot" else 1)
        layers.add(first)
    assert layers == ({1, 3} if "prerot" in found else {1})


def test_the_worst_row_that_a_cache_holds_is_what_kv_compare_finds(dataset):
    results, cases, found = dataset
    verdicts = scores(results, find_detector("kv-compare")).loc["kv-compare"]
    for case in cases.itertuples():
        kept = [found[case.mutant][f"cache: {part}"] for part in ("keys", "values")]
        worst = max(values[case.seed] for figures in kept for values in figures)
        assert worst == verdicts.at[case.case_id, "score"] > 0


def test_where_one_layer_mixes_rotation_conventions_all_before_it_is_exact():
    found = onsets(DEEP, SHIPPED["prerot"])
    assert found == {f"append: {part}": None for part in PARTS} | {
        "cache: residual": 3,
        "cache: keys": 3,
        "cache: values": None,
        "infection": 3,
    }


def test_where_all_layers_mix_rotation_conventions_values_match_in_the_first_and_drift_thereafter(tmp_path):
    line = SHIPPED["prerot"].patch["reference"].line
    everywhere = "step.cache.append(source, torch.stack([projected_keys, values]))"
    found = onsets(DEEP, mutant_of(tmp_path, "prerot-everywhere", "model.py", line, everywhere))
    assert (found["cache: values"], found["cache: keys"], found["cache: residual"]) == (2, 1, 1)


class Overwriting(Engine):
    """Overwrites the tokens that it was given."""

    def trace(self, tokens, adapter=None, media=None):
        found = super().trace(tokens, adapter, media)
        tokens.zero_()
        return found


def test_an_engine_that_overwrites_its_tokens_changes_no_figure():
    assert measured(DEEP, Overwriting) == measured(DEEP)


def test_a_nan_is_a_figure_of_its_layer_and_not_a_zero():
    def broken(config, weights):
        nan = torch.full_like(weights["layers.1.qkv"], torch.nan)
        return Engine(config, weights | {"layers.1.qkv": nan})

    found = measured(DEEP, broken)
    for quantity in QUANTITIES:
        assert found[quantity][0] == [0.0, 0.0]
        assert all(math.isnan(value) for values in found[quantity][1:] for value in values)
