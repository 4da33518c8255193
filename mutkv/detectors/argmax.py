"""Detectors with the usual rule of parity tests: another greedy token, or logits further apart than a tolerance."""

from torch import Tensor

from mutkv.detectors.case import Case
from mutkv.detectors.cost import full_pass, one_step_pass
from mutkv.detectors.detector import detector
from mutkv.detectors.deviation import deviation

TOLERANCE = 1e-2


@detector(batched=True, threshold=TOLERANCE, cost=one_step_pass)
def argmax_one_step(case: Case) -> tuple[Tensor, Tensor]:
    """Another argmax, or max|Δ| above 1e-2, after one decoded token."""
    return argmax_or_tolerance(case.at(step=1))


@detector(batched=True, threshold=TOLERANCE, cost=full_pass)
def argmax_every_step(case: Case) -> tuple[Tensor, Tensor]:
    """Another argmax, or max|Δ| above 1e-2, at any observation."""
    return argmax_or_tolerance(case)


def argmax_or_tolerance(case: Case) -> tuple[Tensor, Tensor]:
    """Return max|Δ|, and whether it is above the tolerance or an argmax differs."""
    score = deviation(case)
    differs = (case.cached.tokens != case.full.tokens).any(dim=-1)
    return score, differs | (score > TOLERANCE)
