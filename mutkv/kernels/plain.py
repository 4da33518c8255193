"""The definition of exact arithmetic, in plain torch: every sum adds its terms in an order fixed by their index.

This form defines what the compiled one must reproduce bit for bit, runs on CUDA, and carries gradients. All tensors
are in the accumulator's dtype. Masked terms are exact zeros, so they change no bit of a sum. exp is computed in
float64: torch's float64 exp gives the same bits at every shape, its softmax and sigmoid do not. Neither its exp nor
its sqrt is correctly rounded, so both forms call torch's.
"""

import torch
from torch import Tensor

from mutkv.kernels.arithmetic import Order

EPSILON = 1e-6


def ordered_sum(terms: Tensor, order: Order) -> Tensor:
    """Sum the last dimension in the given order (``sequential`` or ``pairwise``).

    ``pairwise`` pads with zeros to a power of two and repeatedly adds the upper half onto the lower: unlike a tree
    of neighbours, it does not depend on the padded length. Adding +0.0 first removes negative zeros, which would
    make an all-zero sum's sign depend on that length.
    """
    if order == "sequential":
        total = torch.zeros_like(terms[..., 0])
        for index in range(terms.shape[-1]):
            total = total + terms[..., index]
        return total
    size = 1 << max(terms.shape[-1] - 1, 0).bit_length()
    terms = torch.nn.functional.pad(terms + 0.0, (0, size - terms.shape[-1]))
    while size > 1:
        size //= 2
        terms = terms[..., :size] + terms[..., size:]
    return terms[..., 0]


def product(left: Tensor, right: Tensor, order: Order) -> Tensor:
    """Multiply ``[R, M, K]`` by ``[R, K, N]``, summing over K in order -> ``[R, M, N]``."""
    return ordered_sum(left[:, :, None, :] * right.transpose(1, 2)[:, None], order)


def mean_square(rows: Tensor, order: Order) -> Tensor:
    """Mean of squares over the last dimension: ``[R, M, W]`` -> ``[R, M]``."""
    return ordered_sum(rows * rows, order) / rows.shape[-1]


def scale(rows: Tensor, root: Tensor, gain: Tensor) -> Tensor:
    """Divide rows ``[R, M, W]`` by their root ``[R, M]`` and multiply by the gain ``[R, W]``."""
    return rows / root[..., None] * gain[:, None]


def shifted_scores(query: Tensor, keys: Tensor, allowed: Tensor, bias: Tensor, divisor: float, order: Order) -> Tensor:
    """Attention scores minus their row maximum, -inf where not allowed.

    query ``[R, B, n, H, D]``, keys ``[R, B, T, H, D]``, allowed ``[n, T]``, bias ``[H, n, T]`` or ``[0, 0, 0]`` for
    none -> ``[R, B, H, n, T]``.
    """
    query = query.transpose(2, 3)[:, :, :, :, None]  # [R, B, H, n, 1, D]
    keys = keys.transpose(2, 3)[:, :, :, None]  # [R, B, H, 1, T, D]
    scores = ordered_sum(query * keys, order) / divisor
    if bias.numel():
        scores = scores + bias
    scores = scores.masked_fill(~allowed, -torch.inf)
    return scores - scores.amax(dim=-1, keepdim=True)


def mix(weights: Tensor, values: Tensor, order: Order) -> Tensor:
    """Average the values with unnormalised weights, both sums in order of the key.

    weights ``[R, B, H, n, T]``, values ``[R, B, T, H, D]`` -> ``[R, B, n, H, D]``.
    """
    share = weights / ordered_sum(weights, order)[..., None]
    terms = share[:, :, :, :, None] * values.permute(0, 1, 3, 4, 2)[:, :, :, None]  # [R, B, H, n, D, T]
    return ordered_sum(terms, order).transpose(2, 3)


def rotate(pairs: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the halves (a, b) of ``[R, B, n, H, D]`` by angles ``[n, D / 2]`` (RoPE, Su et al. 2021)."""
    first, second = pairs.chunk(2, dim=-1)
    cos, sin = cos[:, None], sin[:, None]
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


def exp(values: Tensor) -> Tensor:
    """Exponential, computed in float64 and rounded to the dtype of ``values``."""
    return values.double().exp().to(values.dtype)


def sqrt(values: Tensor) -> Tensor:
    """Square root, computed in float64 and rounded to the dtype of ``values``."""
    return values.double().sqrt().to(values.dtype)
