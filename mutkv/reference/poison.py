"""Memory that nothing was written to: finite, large and seeded, so that a wrong read shows and shows alike each time.

Zeros would hide several kinds of faults, and NaN would turn every fault into one that nobody could miss.
"""

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from mutkv.configuration import ModelConfig
from mutkv.kernels import DTYPES

POISON = 1e3


def poisoned(shape: tuple[int, ...], config: ModelConfig, layer: int) -> Tensor:
    """Return a fresh tensor ``[2, R, ...]`` of a layer, in the model's storage format; all replicas hold the same."""
    numbers = draw((shape[0], *shape[2:]), layer).to(config.device, DTYPES[config.arithmetic.storage])
    return numbers[:, None].expand(shape).clone()


@lru_cache(maxsize=64)
def draw(shape: tuple[int, ...], seed: int) -> Tensor:
    """Return finite numbers of about a thousand, float64, the same for a seed on all machines; never to be changed."""
    drawn = np.random.default_rng([seed, *b"poison"]).standard_normal(math.prod(shape))
    return torch.from_numpy(POISON * drawn.reshape(shape))
