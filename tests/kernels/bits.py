"""Comparing tensors bit by bit, and drawing numbers that are hard to add."""

import numpy as np
import torch

INTEGERS = {torch.float64: torch.int64, torch.float32: torch.int32, torch.bfloat16: torch.int16}


def same_bits(left, right):
    """Whether two tensors have the same shape and bits; any NaN equals any other."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    integers = INTEGERS[left.dtype]
    equal = left.contiguous().view(integers) == right.contiguous().view(integers)
    return bool((equal | (left.isnan() & right.isnan())).all())


def awkward(seed, shape, dtype=torch.float64, special=0.1):
    """Draw normal numbers of many magnitudes, a share of them signed zeros, subnormal, tiny or huge."""
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(shape) * 10.0 ** generator.integers(-6, 7, shape)
    largest, smallest = torch.finfo(dtype).max, torch.finfo(dtype).tiny
    odd = np.array([0.0, -0.0, smallest, -smallest / 4, smallest * 3, largest / 3, -largest / 5, 1.0, -1.0])
    chosen = generator.random(shape) < special
    return torch.from_numpy(np.where(chosen, generator.choice(odd, shape), values)).to(dtype)


def ordinary(seed, shape, dtype=torch.float64):
    """Draw standard normal numbers."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)
