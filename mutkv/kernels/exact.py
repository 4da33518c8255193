"""The exact kernel: values rounded to storage at every step, sums in the accumulator, in one fixed order.

It runs the compiled form where there is one (CPU, float64 or float32 accumulator, no gradients) and the plain form
everywhere else; a test holds the two bit-equal.
"""

import math
from typing import Any

import torch
from torch import Tensor

from mutkv.kernels import compiled, plain
from mutkv.kernels.arithmetic import DTYPES, Format, Order


class ExactKernel:
    """Decoder operations whose bits do not depend on how many rows, tokens or replicas share a call."""

    def __init__(self, storage: Format, accumulator: Format, order: Order, *, use_compiled: bool = True) -> None:
        self.storage = DTYPES[storage]
        self.accumulator = DTYPES[accumulator]
        self.order = order
        self.use_compiled = use_compiled and accumulator != "bfloat16"

    def product(self, left: Tensor, right: Tensor) -> Tensor:
        """Multiply ``[R, ..., K]`` by ``[R, K, N]`` -> ``[R, ..., N]``."""
        rows = self._widen(left).flatten(1, -2)  # [R, M, K]
        shape = (*rows.shape[:2], right.shape[-1])
        out = self._run("product", shape, rows, self._widen(right), self.order)
        return self._narrow(out).view(*left.shape[:-1], right.shape[-1])

    def norm(self, hidden: Tensor, gain: Tensor) -> Tensor:
        """RMSNorm of ``[R, B, n, W]`` with gain ``[R, W]``."""
        rows = self._widen(hidden).flatten(1, -2)  # [R, M, W]
        mean_square = self._run("mean_square", rows.shape[:2], rows, self.order)
        root = plain.sqrt(mean_square + plain.EPSILON)
        return self._narrow(self._run("scale", rows.shape, rows, root, self._widen(gain))).view_as(hidden)

    def attention(
        self, query: Tensor, keys: Tensor, values: Tensor, allowed: Tensor, bias: Tensor | None = None
    ) -> Tensor:
        """Softmax attention: query ``[R, B, n, H, D]``, keys and values ``[R, B, T, H, D]``, allowed ``[n, T]``.

        A bias, float64 ``[H, n, T]``, is rounded to the accumulator and added to the scores.
        """
        query, keys, values = self._widen(query), self._widen(keys), self._widen(values)
        replicas, batch, length, heads, width = query.shape
        shape = (replicas, batch, heads, length, keys.shape[2])
        bias = query.new_empty(0, 0, 0) if bias is None else self._widen(bias)
        scores = self._run("shifted_scores", shape, query, keys, allowed, bias, math.sqrt(width), self.order)
        return self._narrow(self._run("mix", query.shape, plain.exp(scores), values, self.order))

    def rotate(self, pairs: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Rotate ``[R, B, n, H, D]`` by float64 tables ``[n, D / 2]``."""
        return self._narrow(self._run("rotate", pairs.shape, *map(self._widen, (pairs, cos, sin))))

    def silu(self, values: Tensor) -> Tensor:
        """SiLU, x / (1 + exp(-x)), elementwise."""
        wide = self._widen(values)
        return self._narrow(wide / (1 + plain.exp(-wide)))

    def add(self, left: Tensor, right: Tensor) -> Tensor:
        """Elementwise sum."""
        return self._narrow(self._widen(left) + self._widen(right))

    def _widen(self, values: Tensor) -> Tensor:
        return values if values.dtype is self.accumulator else values.to(self.accumulator)

    def _narrow(self, values: Tensor) -> Tensor:
        return values if values.dtype is self.storage else values.to(self.storage)

    def _run(self, name: str, shape: tuple[int, ...], *operands: Any) -> Tensor:
        first: Tensor = operands[0]
        if not self.use_compiled or first.is_cuda or (torch.is_grad_enabled() and any(map(has_gradient, operands))):
            result: Tensor = getattr(plain, name)(*operands)
            return result
        out = torch.empty(shape, dtype=self.accumulator)
        getattr(compiled, name)(*map(compiled_operand, operands), out.numpy())
        return out


def has_gradient(operand: Any) -> bool:
    """Whether a gradient flows through an operand; the compiled form would cut it."""
    return isinstance(operand, Tensor) and operand.requires_grad


def compiled_operand(operand: Any) -> Any:
    """Return an operand as the compiled form takes it: contiguous arrays, and the order as a flag."""
    if isinstance(operand, Tensor):
        # Always contiguous: numba would otherwise compile one slower variant per memory layout.
        return (operand if operand.is_contiguous() else operand.contiguous()).numpy()
    return operand == "pairwise" if isinstance(operand, str) else operand
