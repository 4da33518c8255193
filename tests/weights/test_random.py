"""Random and near-tied weights, against the distributions and bit patterns they promise."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from mutkv.configuration import ModelConfig
from mutkv.kernels import Arithmetic
from mutkv.reference import Engine
from mutkv.weights import load_weights
from mutkv.weights.random import random_weights, tie_pairs

CONFIG = ModelConfig(depth=2, heads=2, kv_heads=1, positions="learned")
WIDE = ModelConfig(heads=8, kv_heads=8, head_dim=16, vocab=512, positions="learned", context=256)
BITS = {"float64": torch.int64, "float32": torch.int32, "bfloat16": torch.int16}


def same(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_weights_are_the_same_numbers_on_every_machine():
    drawn = random_weights(CONFIG, 3)
    assert drawn["embedding"][0, :2].tolist() == [2.0409191213851825, -2.5556650313141818]
    assert drawn["layers.1.down"][5, 7].item() == -0.14556534562014706


def test_a_longer_context_only_appends_rows_to_the_position_table():
    short, long = random_weights(CONFIG, 0), random_weights(replace(CONFIG, context=256), 0)
    assert same(short, long | {"positions": long["positions"][:64]})


def test_learned_positions_change_no_tensor_that_rope_has_too():
    learned, rope = random_weights(CONFIG, 0), random_weights(replace(CONFIG, positions="rope"), 0)
    assert same(rope, {name: learned[name] for name in rope})
    assert learned.keys() - rope.keys() == {"positions"}


def test_no_two_seeds_and_no_two_tensors_share_their_draws():
    drawn = [tensor.flatten()[:8] for seed in range(4) for tensor in random_weights(CONFIG, seed).values()]
    normal = [(part - part.mean()) / part.std() for part in drawn]
    assert len({tuple(part.numpy().round(6)) for part in normal}) == len(drawn)


@pytest.mark.parametrize(
    ("name", "mean", "deviation"),
    [
        ("embedding", 0, 1),
        ("positions", 0, 1),
        ("layers.0.attention_norm", 1, 0.1),
        ("layers.0.qkv", 0, 128**-0.5),
        ("layers.0.up", 0, 128**-0.5),
        ("layers.0.down", 0, 256**-0.5),
        ("unembedding", 0, 128**-0.5),
    ],
)
def test_every_tensor_has_the_mean_and_the_deviation_it_promises(name, mean, deviation):
    values = random_weights(WIDE, 0)[name].numpy()
    assert values.mean() == pytest.approx(mean, abs=5 * deviation / np.sqrt(values.size))
    assert values.std() == pytest.approx(deviation, rel=5 / np.sqrt(2 * values.size))


@pytest.mark.parametrize("storage", BITS)
def test_the_columns_of_a_near_tied_pair_are_one_or_two_representable_numbers_apart(storage):
    config = replace(CONFIG, arithmetic=Arithmetic(storage, "float64"))
    columns = load_weights(config, "near-tied", 1.0, (0,))["unembedding"][0]
    steps = (
        columns[:, 0::2].contiguous().view(BITS[storage]) - columns[:, 1::2].contiguous().view(BITS[storage])
    ).abs()
    assert set(steps.flatten().tolist()) == {1, 2}


def test_the_two_best_logits_of_near_tied_weights_differ_by_rounding_and_those_of_random_ones_do_not():
    tokens = torch.arange(20).reshape(1, 1, 20)
    margins = {}
    for kind in ("near-tied", "random"):
        best = Engine(CONFIG, load_weights(CONFIG, kind, 1.0, (0,))).full(tokens).topk(2).values
        margins[kind] = best[..., 0] - best[..., 1]
    assert margins["near-tied"].max() < 1e-14 < 1e-4 < margins["random"].min()
    assert (margins["near-tied"] > 0).double().mean() > 0.5


def test_tying_leaves_every_other_tensor_and_an_unpaired_last_token_alone():
    config = replace(CONFIG, vocab=5)
    drawn = random_weights(config, 0)
    tied = tie_pairs(config, drawn, 0)
    assert {name for name in drawn if not torch.equal(drawn[name], tied[name])} == {"unembedding"}
    changed = (drawn["unembedding"] != tied["unembedding"]).any(dim=0)
    assert changed.tolist() == [False, True, False, True, False]
