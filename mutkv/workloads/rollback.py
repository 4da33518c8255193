"""Speculative decoding: two drafts are verified beside each token, and none, one or both of them are rolled back."""

import torch

from mutkv.configuration import DRAFTED
from mutkv.workloads.run import Run


def rollback(run: Run) -> None:
    """One request; ``steps`` rounds, of which round k rejects k mod 3 drafts. Rejected tokens count as steps."""
    task = run.admit(run.draw(run.configuration.prompt_length))
    for turn in range(run.configuration.steps):
        rejected = turn % DRAFTED
        tokens = torch.cat([run.choose(task), run.draw(DRAFTED - 1)], dim=-1)
        run.feed(task, tokens, [index < DRAFTED - rejected for index in range(DRAFTED)])
        run.reject(task, rejected)
