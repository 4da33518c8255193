"""Beam search: after each token the best continuations go on, and a beam may be dropped for two of another.

Observations lie along the clean engine's beams. An engine under test also searches by itself, and whether its answer
changed is read from there: no single step of a search decides it.
"""

import torch
from torch import Tensor

from mutkv.kernels import plain
from mutkv.workloads.run import Run
from mutkv.workloads.task import needed


def beam(run: Run) -> None:
    """One request whose rows are beams of one prompt."""
    beams, vocab = run.configuration.batch, run.configuration.vocab
    prompt = run.draw(run.configuration.prompt_length, 1).expand(-1, beams, -1).clone()
    task = run.admit(prompt)
    scores = torch.full((len(run.seeds), beams), -torch.inf, dtype=torch.float64, device=prompt.device)
    scores[:, 0] = 0.0  # all beams are alike at first: the first one alone branches
    for _ in range(run.configuration.steps):
        total = scores[..., None] + log_probabilities(needed(task.logits)[:, :, 0].double())  # [R, beams, vocab]
        chosen = run.decide(lambda total=total: best(total.flatten(1), beams))  # type: ignore[misc]
        scores = total.flatten(1).gather(1, chosen)
        run.branch(task, chosen // vocab)
        run.feed(task, (chosen % vocab)[..., None], [False])
    run.answer = task.parts[0].tokens[:, 0]


def best(scores: Tensor, count: int) -> Tensor:
    """Return the places of the ``count`` best, the best first and the lowest among equals; ``[R, count]``."""
    return scores.sort(dim=-1, descending=True, stable=True).indices[:, :count]


def log_probabilities(logits: Tensor) -> Tensor:
    """Return log p over the last dimension; its bits do not depend on how many rows share the call."""
    shifted = logits - logits.amax(dim=-1, keepdim=True)
    return shifted - plain.ordered_sum(plain.exp(shifted), "sequential").log()[..., None]
