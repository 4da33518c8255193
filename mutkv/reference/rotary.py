"""Rotary positions: the angle of every position, plain or stretched to more positions than a model was trained on.

One table serves all calls: a position's angle then has the same bits whoever looks it up.
"""

import math

import torch
from torch import Tensor

from mutkv.configuration import ModelConfig

BASE = 10_000.0
FACTOR, TRAINED = 4.0, 32
"""Scaled models are stretched by this factor, from this many positions."""
FAST, SLOW = 32.0, 1.0
"""Turns within the trained length above which YaRN keeps a pair's rate, and below which it divides it by the factor."""


def rotation_tables(config: ModelConfig) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of position × rate, float64 ``[context, head_dim / 2]``."""
    pairs = config.head_dim // 2
    rates = torch.tensor([BASE ** (-pair / pairs) for pair in range(pairs)], dtype=torch.float64)
    length = 1.0
    if config.rope_scaling == "linear":
        rates = rates / FACTOR
    elif config.rope_scaling == "yarn":
        rates, length = yarn_rates(rates), yarn_length()
    angles = torch.arange(config.context, dtype=torch.float64)[:, None] * rates
    return (angles.cos() * length).to(config.device), (angles.sin() * length).to(config.device)


def yarn_rates(rates: Tensor) -> Tensor:
    """Return the rates of "NTK-by-parts" (Peng et al. 2023, YaRN, section 3.2): fast pairs keep theirs.

    A pair that turns often within the trained length tells neighbours apart and stays; a pair that never completes a
    turn is interpolated, as in ``linear``; between them the two are mixed.
    """
    turns = TRAINED * rates / (2 * math.pi)
    kept = ((turns - SLOW) / (FAST - SLOW)).clamp(0, 1)
    return rates * kept + rates / FACTOR * (1 - kept)


def yarn_length() -> float:
    """Return what YaRN multiplies queries and keys by, 0.1 ln(factor) + 1 (section 3.4), so scores by its square."""
    return 0.1 * math.log(FACTOR) + 1
