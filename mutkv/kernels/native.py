"""The native kernel: torch's own matmul and scaled_dot_product_attention, fast and realistic, not shape-invariant.

Each replica is computed alone, so that a record does not depend on which seeds share its group; rows of a batch are
computed together, as a serving engine does, and so influence each other's rounding.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - torch's convention
from torch import Tensor

from mutkv.kernels.arithmetic import DTYPES, Format
from mutkv.kernels.plain import EPSILON


class NativeKernel:
    """Decoder operations in the storage format, in whatever order torch's kernels choose."""

    def __init__(self, storage: Format) -> None:
        self.storage = DTYPES[storage]

    def product(self, left: Tensor, right: Tensor) -> Tensor:
        """Multiply ``[R, ..., K]`` by ``[R, K, N]`` -> ``[R, ..., N]``."""
        return torch.stack([rows @ matrix for rows, matrix in zip(left, right, strict=True)])

    def norm(self, hidden: Tensor, gain: Tensor) -> Tensor:
        """RMSNorm of ``[R, B, n, W]`` with gain ``[R, W]``."""
        width = hidden.shape[-1:]
        return torch.stack([F.rms_norm(h, width, g, EPSILON) for h, g in zip(hidden, gain, strict=True)])

    def attention(
        self, query: Tensor, keys: Tensor, values: Tensor, allowed: Tensor, bias: Tensor | None = None
    ) -> Tensor:
        """Softmax attention: query ``[R, B, n, H, D]``, keys and values ``[R, B, T, H, D]``, allowed ``[n, T]``.

        A bias, float64 ``[H, n, T]``, is rounded to the storage format and added to the scores.
        """
        mask = allowed if bias is None else bias.to(self.storage).masked_fill(~allowed, -torch.inf)
        heads_first = (part.transpose(2, 3) for part in (query, keys, values))  # [R, B, H, T, D]
        replicas = zip(*heads_first, strict=True)
        mixed = [F.scaled_dot_product_attention(q, k, v, attn_mask=mask) for q, k, v in replicas]
        return torch.stack(mixed).transpose(2, 3)

    def rotate(self, pairs: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Rotate ``[R, B, n, H, D]`` by float64 tables ``[n, D / 2]``."""
        cos, sin = cos[:, None].to(self.storage), sin[:, None].to(self.storage)
        first, second = pairs.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)

    def silu(self, values: Tensor) -> Tensor:
        """SiLU, x / (1 + exp(-x)), elementwise."""
        return torch.stack([F.silu(replica) for replica in values])  # its vector body and tail differ in the last bit

    def add(self, left: Tensor, right: Tensor) -> Tensor:
        """Elementwise sum."""
        return left + right
