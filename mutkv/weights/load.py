"""The weights of a group: one replica per seed, stacked, sharpened, in the storage format, on the device."""

from functools import lru_cache

import torch
from torch import Tensor

from mutkv.configuration import Configuration, ModelConfig, Weights
from mutkv.errors import UsageError
from mutkv.kernels import DTYPES
from mutkv.weights.random import random_weights, tie_pairs
from mutkv.weights.trained import trained_length, trained_replica


@lru_cache(maxsize=8)
def load_weights(config: ModelConfig, kind: Weights, sharpness: float, seeds: tuple[int, ...]) -> dict[str, Tensor]:
    """Return tensors ``[len(seeds), ...]`` of all replicas; shared between calls, never to be changed in place.

    ``sharpness`` multiplies W_q and W_k, and so attention scores by its square: 1 is diffuse attention, 2 is peaked.
    """
    replicas = [one_replica(config, kind, seed) for seed in seeds]
    stacked = {name: torch.stack([replica[name] for replica in replicas]) for name in replicas[0]}
    sharpened = (config.heads + config.kv_heads) * config.head_dim
    for layer in range(config.depth):
        stacked[f"layers.{layer}.qkv"][..., :sharpened] *= sharpness
    return {name: tensor.to(config.device, DTYPES[config.arithmetic.storage]) for name, tensor in stacked.items()}


def check_weights(configuration: Configuration) -> None:
    """Raise UsageError where no weights of the asked kind exist for this configuration."""
    if configuration.weights != "trained":
        return
    for name in ("adapters", "media"):
        if getattr(configuration, name):
            raise UsageError(f"trained weights have no {name}: use weights 'random', or leave out {name}")
    trained_replica(configuration.model(), configuration.seed)
    limit = trained_length(configuration.positions)
    if configuration.reach > limit:
        length = f"prompt_length {configuration.prompt_length} + steps {configuration.steps}"
        length = length if configuration.workload == "decode" else f"{configuration.reach} tokens ({length})"
        raise UsageError(f"{length} is beyond the {limit} tokens that were trained on: shorten one of them")


def one_replica(config: ModelConfig, kind: Weights, seed: int) -> dict[str, Tensor]:
    """Return one seed's tensors, float64 on the CPU."""
    if kind == "random":
        return random_weights(config, seed)
    if kind == "trained":
        return trained_replica(config, seed)
    return tie_pairs(config, random_weights(config, seed), seed)
