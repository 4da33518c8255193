"""Detectors that open the cache: stored rows against the keys and values that the full path computes."""

import torch
from torch import Tensor

from mutkv.detectors.case import Case
from mutkv.detectors.cost import full_pass
from mutkv.detectors.detector import detector


@detector(needs="kv", cost=full_pass)
def kv_compare(case: Case) -> Tensor:
    """max|Δ| of stored keys and values against those of the full path; a missing row counts whole."""
    keys = zip(case.cached.keys, case.full.keys, strict=True)
    values = zip(case.cached.values, case.full.values, strict=True)
    return torch.cat([difference(*pair).flatten() for pair in (*keys, *values)]).abs().amax()


def difference(stored: Tensor, computed: Tensor) -> Tensor:
    """Return stored − computed, ``[n, kv_heads, head_dim]``; rows that one side lacks count as zeros there."""
    length = max(len(stored), len(computed))
    return padded(stored, length) - padded(computed, length)


def padded(rows: Tensor, length: int) -> Tensor:
    """Return rows followed by zeros, ``[length, kv_heads, head_dim]``."""
    return torch.cat([rows, rows.new_zeros(length - len(rows), *rows.shape[1:])])
