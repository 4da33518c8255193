"""Greedy choice with the tie rule that all of mutkv shares: the lowest token wins."""

import torch
from torch import Tensor


def lowest_argmax(logits: Tensor) -> Tensor:
    """Return the index of the maximum of ``[..., vocab]``, the lowest one among ties.

    torch.argmax does not promise which of several maxima it returns.
    """
    tokens = torch.arange(logits.shape[-1], device=logits.device)
    is_highest = logits == logits.amax(dim=-1, keepdim=True)
    return torch.where(is_highest, tokens, logits.shape[-1]).amin(dim=-1).clamp(max=logits.shape[-1] - 1)
