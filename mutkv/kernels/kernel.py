"""The operations a decoder is made of, behind one protocol, and the choice of who carries them out."""

from typing import Protocol

from torch import Tensor

from mutkv.kernels.arithmetic import Arithmetic, Order
from mutkv.kernels.exact import ExactKernel
from mutkv.kernels.native import NativeKernel


class Kernel(Protocol):
    """Decoder operations; every result is in the storage dtype."""

    def product(self, left: Tensor, right: Tensor) -> Tensor:
        """Multiply ``[R, ..., K]`` by ``[R, K, N]`` -> ``[R, ..., N]``."""

    def norm(self, hidden: Tensor, gain: Tensor) -> Tensor:
        """RMSNorm of ``[R, B, n, W]`` with gain ``[R, W]``."""

    def attention(
        self, query: Tensor, keys: Tensor, values: Tensor, allowed: Tensor, bias: Tensor | None = None
    ) -> Tensor:
        """Softmax attention: query ``[R, B, n, H, D]``, keys and values ``[R, B, T, H, D]``, allowed ``[n, T]``.

        A bias, float64 ``[H, n, T]``, is added to the scores.
        """

    def rotate(self, pairs: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Rotate ``[R, B, n, H, D]`` by float64 tables ``[n, D / 2]``."""

    def silu(self, values: Tensor) -> Tensor:
        """SiLU, x / (1 + exp(-x)), elementwise."""

    def add(self, left: Tensor, right: Tensor) -> Tensor:
        """Elementwise sum."""


def kernel_for(arithmetic: Arithmetic, order: Order) -> Kernel:
    """Return the kernel that adds in this order, in the formats of ``arithmetic``."""
    if order == "native":
        return NativeKernel(arithmetic.storage)
    return ExactKernel(arithmetic.storage, arithmetic.accumulator, order)
