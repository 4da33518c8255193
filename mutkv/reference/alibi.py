"""ALiBi (Press et al. 2022): no positions in the vectors, but a penalty on every score that grows with distance."""

import torch
from torch import Tensor


def slopes(heads: int) -> list[float]:
    """Return each head's slope: 2^(-8 h / n) for h = 1 … n, n the greatest power of two within ``heads``.

    Further heads take every other slope of twice as many, as the authors' code does.
    """
    size = 1 << (heads.bit_length() - 1)
    between = [2.0 ** (-4.0 * (2 * head + 1) / size) for head in range(heads - size)]
    return [2.0 ** (-8.0 * (head + 1) / size) for head in range(size)] + between


def distance_bias(heads: int, query_index: Tensor, key_index: Tensor) -> Tensor:
    """Return slope × (key − query), float64 ``[heads, n, T]``: 0 for a token itself, ever lower for older ones."""
    distance = (key_index - query_index[:, None]).double()  # [n, T]
    slope = torch.tensor(slopes(heads), dtype=torch.float64, device=distance.device)
    return slope[:, None, None] * distance
