"""What ``load_weights`` does to any kind of weights: stack, sharpen, convert, and leave its sources alone."""

import pytest
import torch

from mutkv.configuration import ModelConfig
from mutkv.kernels import Arithmetic
from mutkv.weights import load_weights
from mutkv.weights.random import random_weights
from mutkv.weights.trained import trained_replica

CONFIG = ModelConfig(depth=2, heads=2, kv_heads=1)
KINDS = ["random", "near-tied", "trained"]


@pytest.mark.parametrize("kind", KINDS)
def test_sharpness_multiplies_every_attention_score_by_its_square_and_no_value(kind):
    hidden = torch.from_numpy(random_weights(ModelConfig(vocab=10), 7)["embedding"].numpy())
    plain, sharp = (load_weights(CONFIG, kind, sharpness, (1,)) for sharpness in (1.0, 3.0))
    for layer in ("layers.0.qkv", "layers.1.qkv"):
        (query, key, value), (sharp_query, sharp_key, sharp_value) = (
            (hidden @ weights[layer][0]).split([16, 8, 8], dim=-1) for weights in (plain, sharp)
        )
        for head in (slice(0, 8), slice(8, 16)):
            torch.testing.assert_close(sharp_query[:, head] @ sharp_key.T, 9 * (query[:, head] @ key.T))
        assert torch.equal(sharp_value, value)


@pytest.mark.parametrize("kind", KINDS)
def test_replica_i_is_the_ith_seed_whatever_else_is_loaded(kind):
    together = load_weights(CONFIG, kind, 1.5, (4, 0, 2))
    for index, seed in enumerate((4, 0, 2)):
        alone = load_weights(CONFIG, kind, 1.5, (seed,))
        assert all(torch.equal(together[name][index], alone[name][0]) for name in alone)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("storage", ["float64", "float32", "bfloat16"])
def test_every_tensor_is_in_the_storage_format(kind, storage):
    config = ModelConfig(depth=2, kv_heads=1, arithmetic=Arithmetic(storage, "float64"))
    assert {str(tensor.dtype) for tensor in load_weights(config, kind, 2.0, (0,)).values()} == {f"torch.{storage}"}


def test_trained_weights_are_the_trained_ones_and_sharpening_does_not_reach_the_cached_file():
    before = trained_replica(CONFIG, 0)
    load_weights(CONFIG, "trained", 2.0, (0,))
    loaded = load_weights(CONFIG, "trained", 1.0, (0,))
    assert all(torch.equal(loaded[name][0], before[name]) for name in before)
    assert not torch.equal(before["embedding"], random_weights(CONFIG, 0)["embedding"])
