"""The arithmetic of a run: what values are stored in, what sums run in, and in which order they are added.

Storage and accumulator are independent on purpose: rounding claims about caches are claims about one or the other.
"""

from dataclasses import dataclass
from typing import Literal

import torch

Format = Literal["float64", "float32", "bfloat16"]
Order = Literal["sequential", "pairwise", "native"]

DTYPES: dict[str, torch.dtype] = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
}


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Number formats and summation orders of one engine.

    ``sequential`` and ``pairwise`` are exact by construction: the order of additions depends on the summed index
    alone. ``native`` is whatever torch's own kernels do; it ignores ``accumulator``.
    """

    storage: Format = "float64"
    accumulator: Format = "float64"
    prefill_order: Order = "sequential"
    decode_order: Order = "sequential"

    @property
    def native(self) -> bool:
        """Whether any part runs on torch's own kernels, which are not invariant to shape."""
        return "native" in (self.prefill_order, self.decode_order)

    @property
    def split(self) -> bool:
        """Whether prefill and decode add in different orders."""
        return self.prefill_order != self.decode_order

    @property
    def control_order(self) -> Order:
        """The other order, in which the no-cache control repeats the full path."""
        if self.split:
            return self.decode_order
        return "pairwise" if self.prefill_order == "sequential" else "sequential"
