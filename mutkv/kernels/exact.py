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
        return self._run("product", shape, rows, self._widen(right)).unflatten(1, left.shape[1:-1])

    def norm(self, hidden: Tensor, gain: Tensor) -> Tensor:
        """RMSNorm of ``[R, B, n, W]`` with gain ``[R, W]``."""
        rows = self._widen(hidden).flatten(1, -2)  # [R, M, W]
        mean_square = self._run("mean_square", rows.shape[:2], rows, narrow=False)
        root = plain.sqrt(mean_square + plain.EPSILON)[..., None]
        return (rows / root * self._widen(gain)[:, None]).to(self.storage).view_as(hidden)

    def attention(self, query: Tensor, keys: Tensor, values: Tensor, allowed: Tensor) -> Tensor:
        """Softmax attention: query ``[R, B, n, H, D]``, keys and values ``[R, B, T, H, D]``, allowed ``[n, T]``."""
        query, keys, values = self._widen(query), self._widen(keys), self._widen(values)
        replicas, batch, length, heads, width = query.shape
        shape = (replicas, batch, heads, length, keys.shape[2])
        scores = self._run("shifted_scores", shape, query, keys, allowed, math.sqrt(width), narrow=False)
        return self._run("mix", query.shape, plain.exp(scores), values)

    def rotate(self, pairs: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Rotate ``[R, B, n, H, D]`` by float64 tables ``[n, D / 2]``."""
        pairs, cos, sin = self._widen(pairs), self._widen(cos), self._widen(sin)
        if not self._compiles(pairs):
            return plain.rotate(pairs, cos, sin).to(self.storage)
        out = torch.empty(pairs.shape, dtype=self.accumulator)
        compiled.rotate(_array(pairs), _array(cos), _array(sin), out.numpy())
        return out.to(self.storage)

    def silu(self, values: Tensor) -> Tensor:
        """SiLU, x / (1 + exp(-x)), elementwise."""
        wide = self._widen(values)
        return (wide / (1 + plain.exp(-wide))).to(self.storage)

    def add(self, left: Tensor, right: Tensor) -> Tensor:
        """Elementwise sum."""
        return (self._widen(left) + self._widen(right)).to(self.storage)

    def _widen(self, values: Tensor) -> Tensor:
        return values.to(self.accumulator)

    def _compiles(self, values: Tensor) -> bool:
        return self.use_compiled and not values.is_cuda and not (torch.is_grad_enabled() and values.requires_grad)

    def _run(self, name: str, shape: tuple[int, ...], *operands: Any, narrow: bool = True) -> Tensor:
        if self._compiles(operands[0]):
            out = torch.empty(shape, dtype=self.accumulator)
            arrays = [_array(operand) if isinstance(operand, Tensor) else operand for operand in operands]
            getattr(compiled, name)(*arrays, self.order == "pairwise", out.numpy())
        else:
            out = getattr(plain, name)(*operands, self.order)
        return out.to(self.storage) if narrow else out


def _array(tensor: Tensor) -> Any:
    # Always contiguous: numba would otherwise compile one slower variant per memory layout.
    return tensor.contiguous().numpy()
