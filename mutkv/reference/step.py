"""One call of the decoder: where its tokens stand, over which cache, with which pads, adapter and medium."""

from dataclasses import dataclass

import torch
from torch import Tensor

from mutkv.kernels import Kernel
from mutkv.reference.cache import Cache


@dataclass(frozen=True, slots=True)
class Step:
    """What ``Decoder.forward`` needs beside tokens; the defaults are the full path."""

    kernel: Kernel
    start: int = 0
    """Columns that were fed before."""
    cache: Cache | None = None
    pad: Tensor | None = None
    """Columns of each row before its first token, ``[B]``; None where no row is padded."""
    adapter: int | None = None
    media: int | None = None

    def positions(self, start: int, end: int, device: torch.device) -> Tensor:
        """Return the positions of columns start … end − 1: ``[1, n]``, or ``[B, n]`` where rows are padded."""
        columns = torch.arange(start, end, device=device)[None]  # [1, n]
        if self.pad is None:
            return columns
        return (columns - self.pad[:, None]).clamp(min=0)  # [B, n]; a pad stands nowhere, at 0 say
