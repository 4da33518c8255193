"""Random and near-tied weights, drawn per seed in float64 by numpy, whose normal draws do not depend on the CPU."""

import itertools
import math

import numpy as np
import torch
from torch import Tensor

from mutkv.configuration import ModelConfig
from mutkv.kernels import DTYPES

MLP_RATIO = 2
RANK = 2
"""Inner width of an adapter."""


def shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor of one replica; matrices are ``[inputs, outputs]``."""
    width = config.width
    found: dict[str, tuple[int, ...]] = {"embedding": (config.vocab, width)}
    for layer in range(config.depth):
        found |= {
            f"layers.{layer}.attention_norm": (width,),
            f"layers.{layer}.qkv": (width, (config.heads + 2 * config.kv_heads) * config.head_dim),
            f"layers.{layer}.output": (width, width),
            f"layers.{layer}.mlp_norm": (width,),
            f"layers.{layer}.up": (width, MLP_RATIO * width),
            f"layers.{layer}.down": (MLP_RATIO * width, width),
        }
    found |= {"final_norm": (width,), "unembedding": (width, config.vocab)}
    return found | ({"positions": (config.context, width)} if config.positions == "learned" else {})


def random_weights(config: ModelConfig, seed: int) -> dict[str, Tensor]:
    """Draw one replica: embeddings N(0, 1), matrices N(0, 1 / inputs), gains 1 + N(0, 0.1²); float64.

    The positions are drawn last, so that a longer table changes no other tensor.
    """
    shape_of = shapes(config)
    normal = np.random.default_rng(seed).standard_normal(sum(map(math.prod, shape_of.values())))
    ends = np.cumsum([math.prod(shape) for shape in shape_of.values()])[:-1]
    drawn = {}
    for (name, shape), flat in zip(shape_of.items(), np.split(normal, ends), strict=True):
        if name.endswith("norm"):
            flat = 1 + 0.1 * flat
        elif name not in ("embedding", "positions"):
            flat = flat / math.sqrt(shape[0])
        drawn[name] = torch.from_numpy(flat.reshape(shape))
    return drawn | extra_weights(config, seed)


def extra_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return the shapes of one replica's adapters (a product of two thin matrices beside qkv) and media embeddings."""
    found: dict[str, tuple[int, ...]] = {}
    columns = (config.heads + 2 * config.kv_heads) * config.head_dim
    for adapter, layer in itertools.product(range(config.adapters), range(config.depth)):
        found[f"adapters.{adapter}.layers.{layer}.down"] = (config.width, RANK)
        found[f"adapters.{adapter}.layers.{layer}.up"] = (RANK, columns)
    return found | ({"media": (config.media, config.width)} if config.media else {})


def extra_weights(config: ModelConfig, seed: int) -> dict[str, Tensor]:
    """Draw adapters and media, N(0, 1 / inputs) and N(0, 1), each from its own stream: no other tensor changes."""
    drawn = {}
    for name, shape in extra_shapes(config).items():
        normal = np.random.default_rng([seed, *name.encode()]).standard_normal(shape)
        drawn[name] = torch.from_numpy(normal if name == "media" else normal / math.sqrt(shape[0]))
    return drawn


def tie_pairs(config: ModelConfig, weights: dict[str, Tensor], seed: int) -> dict[str, Tensor]:
    """Make each odd token's output column its even neighbour's, moved by one or two storage ulps per entry.

    The two logits of a pair then differ by about one rounding step, at every position.
    """
    storage = DTYPES[config.arithmetic.storage]
    even = weights["unembedding"][:, 0 : config.vocab - 1 : 2].to(storage).double()
    sign = np.random.default_rng([seed, *b"near-tied"]).choice([-1.0, 1.0], size=even.shape)
    tied = weights["unembedding"].clone()
    tied[:, 1::2] = even * (1 + torch.from_numpy(sign) * torch.finfo(storage).eps)
    tied[:, 0 : config.vocab - 1 : 2] = even
    return weights | {"unembedding": tied}
