"""Detectors that measure how far cached and full logits are apart, at one step or at all of them.

A detector whose step does not exist (``prefill`` with an empty prompt, ``one-step`` without steps) has looked at
nothing: its score is 0, and it does not flag.
"""

from torch import Tensor

from mutkv.detectors.case import Case
from mutkv.detectors.cost import full_pass, one_step_pass, prefill_pass
from mutkv.detectors.detector import detector

TOLERANCE = 1e-5
"""Absolute and relative tolerance of ``allclose``."""


@detector(batched=True, cost=prefill_pass)
def prefill(case: Case) -> Tensor:
    """max|Δ| of the logits at the prefill's last position."""
    return deviation(case.at(step=0))


@detector(batched=True, cost=one_step_pass)
def one_step(case: Case) -> Tensor:
    """max|Δ| of the logits after one decoded token."""
    return deviation(case.at(step=1))


@detector(batched=True, cost=full_pass)
def every_step(case: Case) -> Tensor:
    """max|Δ| of the logits at every observation."""
    return deviation(case)


@detector(batched=True, cost=full_pass)
def last_step(case: Case) -> Tensor:
    """max|Δ| of the logits at the last step of each sequence."""
    return deviation(case.last())


@detector(batched=True, threshold=TOLERANCE, cost=full_pass)
def allclose(case: Case) -> Tensor:
    """Largest excess of |Δ| over a relative tolerance of 1e-5, at every observation."""
    full = case.full.logits
    difference = (case.cached.logits - full).abs()
    return largest((difference - TOLERANCE * full.abs()).clamp(min=0))


def deviation(case: Case) -> Tensor:
    """Return max|cached − full| of a view's logits, ``[]``, or ``[C]`` of a batch."""
    return largest((case.cached.logits - case.full.logits).abs_())


def largest(values: Tensor) -> Tensor:
    """Return the largest of values >= 0 over the last two dimensions; 0 where there are none."""
    flat = values.flatten(-2)
    return flat.amax(dim=-1) if flat.shape[-1] else flat.sum(dim=-1)
