"""Detectors that see only what an API returns: the text, or its log-probabilities, of the first eight steps.

They look at emitted observations alone, because a rejected draft is in no answer; of several sequences the worst
counts.
"""

import torch
from torch import Tensor

from mutkv.detectors.case import Case
from mutkv.detectors.cost import eight_step_pass
from mutkv.detectors.detector import detector
from mutkv.detectors.deviation import largest

STEPS = range(8)


@detector(needs="text", batched=True, cost=eight_step_pass)
def text_8(case: Case) -> Tensor:
    """Share of the first eight tokens from the first different one on."""
    answers = case.at(step=STEPS, emitted=True).sequences()
    if not answers:
        return torch.zeros(case.cached.tokens.shape[:-1], dtype=torch.float64)
    return torch.stack([disagreement(answer) for answer in answers]).amax(dim=0)


@detector(needs="logprobs", batched=True, threshold=1e-2, cost=eight_step_pass)
def logprob_8(case: Case) -> Tensor:
    """Largest difference of the chosen token's log-probability over the first eight tokens."""
    answer = case.at(step=STEPS, emitted=True)
    chosen = answer.cached.tokens[..., None]
    cached, full = (path.logprobs.gather(-1, chosen) for path in (answer.cached, answer.full))
    return largest((cached - full).abs())


def disagreement(answer: Case) -> Tensor:
    """Return 1 − (agreeing prefix) / n of one sequence's n >= 1 tokens."""
    agree = answer.cached.tokens == answer.full.tokens
    prefix = agree.cumprod(dim=-1).sum(dim=-1).double()
    return 1 - prefix / agree.shape[-1]
