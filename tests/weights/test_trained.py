"""The shipped weights: that they do what their README says, are what the recipe makes, and refuse the rest."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from mutkv.configuration import Configuration, ModelConfig
from mutkv.errors import UsageError
from mutkv.exit_codes import ExitCode
from mutkv.kernels import Arithmetic
from mutkv.reference import Engine
from mutkv.weights import load_weights
from mutkv.weights.random import shapes
from mutkv.weights.train import FAMILIES, repeated_words
from mutkv.weights.trained import (
    SHIPPED,
    family,
    periodic_prompt,
    trained_length,
    trained_period,
    trained_replica,
)

SEEDS = (0, 1, 2, 3, 4, 5)
ROWS = 32
every_family = pytest.mark.parametrize("positions", ["learned", "rope"])


def provenance(positions):
    with safe_open(SHIPPED / f"{positions}.safetensors", "pt") as file:
        return json.loads(file.metadata()["provenance"])


def configuration(positions, **changes):
    trained = family(positions)
    return Configuration(depth=trained.depth, kv_heads=trained.kv_heads, positions=positions, **changes)


def engine(positions, **changes):
    config = configuration(positions, **changes).model()
    return Engine(config, load_weights(config, "trained", 1.0, SEEDS))


def words(length):
    """Repeated words that training did not use, ``[6, ROWS, length]``."""
    prompts = [[periodic_prompt(seed, length, 32, 4, row) for row in range(ROWS)] for seed in SEEDS]
    return torch.from_numpy(np.array(prompts))


@every_family
@pytest.mark.parametrize("prompt_length", [6, 12])
def test_every_seed_continues_its_first_prompt_without_error_and_99_percent_of_all_prompts_tokens(
    positions, prompt_length
):
    expected = words(prompt_length + 13)
    session = engine(positions, prompt_length=prompt_length).open(ROWS)
    produced = [session.extend(expected[:, :, :prompt_length])[:, :, -1:].argmax(-1)]
    for _ in range(12):
        produced.append(session.extend(produced[-1]).argmax(-1))
    right = torch.cat(produced, dim=-1) == expected[:, :, prompt_length:]
    assert right[:, 0].all()
    assert right.double().mean(dim=(1, 2)).min() >= 0.99


@every_family
def test_every_seed_is_below_the_target_loss_on_words_it_was_not_checked_on(positions):
    tokens = words(32).numpy()
    logits = engine(positions).full(torch.from_numpy(tokens)).numpy()[:, :, 3:-1]
    shifted = logits - logits.max(axis=-1, keepdims=True)
    right = np.take_along_axis(shifted, tokens[:, :, 4:, None], axis=-1)[..., 0]
    losses = (np.log(np.exp(shifted).sum(axis=-1)) - right).mean(axis=(1, 2))
    assert losses.max() < 0.05


@every_family
def test_the_file_was_made_by_the_recipe_that_the_code_states(positions):
    config, recipe = FAMILIES[positions]
    made = provenance(positions)
    assert made["recipe"] == json.loads(json.dumps(asdict(recipe)))
    later = json.loads(json.dumps(asdict(ModelConfig())))  # parts that came after the file have their defaults
    assert later | made["model"] == json.loads(json.dumps(asdict(config)))


@every_family
def test_the_readme_states_the_steps_and_losses_that_the_file_records(positions):
    made = provenance(positions)
    assert max(made["losses"]) <= made["recipe"]["target_loss"]
    row = f"| {positions} | {made['steps']} | " + " | ".join(f"{loss:.4f}" for loss in made["losses"]) + " |"
    assert row in (SHIPPED / "README.md").read_text().splitlines()


@every_family
def test_the_file_is_small_enough_to_ship(positions):
    assert (SHIPPED / f"{positions}.safetensors").stat().st_size < 500 * 1024


@every_family
def test_a_replica_has_the_tensors_of_a_model_and_a_position_row_per_trained_token(positions):
    replica = trained_replica(configuration(positions).model(), 5)
    assert {name: tuple(tensor.shape) for name, tensor in replica.items()} == shapes(family(positions))
    assert {tensor.dtype for tensor in replica.values()} == {torch.float64}
    assert ("positions" in replica) == (positions == "learned")
    assert trained_length(positions) == 32


@every_family
def test_each_seed_gets_the_slice_of_the_file_that_bears_its_number(positions):
    stacked = load_file(SHIPPED / f"{positions}.safetensors")
    for seed in SEEDS:
        replica = trained_replica(configuration(positions).model(), seed)
        assert all(torch.equal(replica[name], tensor[seed].double()) for name, tensor in stacked.items())


@every_family
def test_what_does_not_change_the_weights_is_not_refused(positions):
    config = configuration(positions).model()
    other = replace(config, rotation="read", context=256, arithmetic=Arithmetic("bfloat16", "float32"))
    assert torch.equal(trained_replica(other, 0)["unembedding"], trained_replica(config, 0)["unembedding"])


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({"depth": 3}, "2"),
        ({"heads": 4}, "2"),
        ({"kv_heads": 2}, "1"),
        ({"head_dim": 16}, "8"),
        ({"vocab": 33}, "32"),
        ({"seed": 6}, "0, 1, 2, 3, 4, 5"),
        ({"seed": -1}, "0, 1, 2, 3, 4, 5"),
    ],
)
def test_a_structure_or_seed_that_was_not_trained_is_refused_by_naming_it_and_what_there_is(changes, known):
    asked = replace(configuration("rope"), **changes)
    (name, value), *_ = changes.items()
    expected = rf"^no trained weights with {name} {value} for rope positions: use {name} {known} or weights 'random'$"
    with pytest.raises(UsageError, match=expected) as caught:
        trained_replica(asked.model(), asked.seed)
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_prompt_repeats_its_word_and_begins_like_any_longer_prompt_of_its_seed_and_row():
    prompt = periodic_prompt(3, 12, 32, 4, row=1)
    assert prompt.dtype == np.int64
    assert prompt.tolist() == prompt[:4].tolist() * 3
    assert periodic_prompt(3, 6, 32, 4, row=1).tolist() == prompt[:6].tolist()


def test_prompts_of_different_seeds_and_rows_have_different_words_over_the_whole_vocabulary():
    prompts = [tuple(periodic_prompt(seed, 4, 32, 4, row).tolist()) for seed in SEEDS for row in range(ROWS)]
    assert len(set(prompts)) == len(prompts)
    assert set().union(*prompts) == set(range(32))


@every_family
def test_no_seed_was_trained_on_the_word_of_its_first_prompt(positions):
    config, recipe = FAMILIES[positions]
    for seed in recipe.seeds:
        stream = np.random.default_rng([seed, *b"training"])
        drawn = repeated_words(stream, recipe.batch * provenance(positions)["steps"], config, recipe)[:, :4]
        word = torch.from_numpy(periodic_prompt(seed, 4, config.vocab, trained_period(positions)))
        assert not (drawn == word).all(dim=1).any()
