"""Batches whose rows stand at different positions: left pads push a short row's first token to a later column.

Kernels take one mask and one table of angles per call, so such rows are computed one after another.
"""

import torch
from torch import Tensor

from mutkv.kernels import Kernel


def rotate_rows(kernel: Kernel, pairs: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate ``[R, B, n, H, D]`` by angles ``[1, n, D / 2]``, or ``[B, n, D / 2]`` of each row."""
    if len(cos) == 1:
        return kernel.rotate(pairs, cos[0], sin[0])
    rows = zip(torch.split(pairs, 1, dim=1), cos, sin, strict=True)
    return torch.cat([kernel.rotate(row, *angles) for row, *angles in rows], dim=1)


def without_pads(allowed: Tensor, query_index: Tensor, key_index: Tensor, pad: Tensor) -> Tensor:
    """Return a mask per row, ``[B, n, T]``: no token sees a pad; a pad sees itself, so that its softmax has a term."""
    real = key_index >= pad[:, None]  # [B, T]
    return (allowed & real[:, None]) | (key_index == query_index[:, None])


def attend_rows(
    kernel: Kernel, query: Tensor, keys: Tensor, values: Tensor, allowed: Tensor, bias: Tensor | None
) -> Tensor:
    """Attend under one mask ``[n, T]``, or under each row's own ``[B, n, T]`` -> ``[R, B, n, H, D]``."""
    if allowed.dim() == 2:
        return kernel.attention(query, keys, values, allowed, bias)
    parts = (torch.split(part, 1, dim=1) for part in (query, keys, values))
    rows = zip(*parts, allowed, strict=True)
    return torch.cat([kernel.attention(q, k, v, mask, bias) for q, k, v, mask in rows], dim=1)
