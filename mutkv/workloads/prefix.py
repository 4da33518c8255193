"""Prompts that a prefix store must tell apart, or may take for the same: the script that a store lives or dies by.

All tokens are drawn beforehand, so that what is found does not depend on what an engine answers.
"""

import torch
from torch import Tensor

from mutkv.workloads.run import Run
from mutkv.workloads.task import Task


def prefix(run: Run) -> None:
    """One prompt three times; one that differs in a block's last token, twice; extras; fillers; the first again."""
    length = run.configuration.prompt_length
    prompt = run.draw(length)
    prompt[..., 0] = 0  # where a medium stands, if there is one
    for _ in range(3):
        serve(run, prompt)
    for _ in range(2):
        serve(run, other_token(run, prompt, max(run.configuration.block, 1) - 1))
    fork_a_shared_block(run, prompt)
    for adapter in range(run.configuration.adapters):
        serve(run, prompt, adapter=adapter)
    for medium in range(run.configuration.media):
        serve(run, prompt, media=medium)
    for _ in range(2):
        serve(run, run.draw(length))
    serve(run, prompt)
    if run.configuration.adapters:
        run.server.update(0)
        serve(run, prompt)


def serve(run: Run, prompt: Tensor, adapter: int | None = None, media: int | None = None) -> None:
    """Admit a prompt, decode drawn tokens one by one, finish."""
    task = run.admit(prompt, adapter=adapter, media=media)
    decode_drawn(run, task, run.draw(run.configuration.steps))
    run.finish(task)


def decode_drawn(run: Run, task: Task, tokens: Tensor) -> None:
    """Feed tokens ``[R, B, n]`` one by one."""
    for token in torch.split(tokens, 1, dim=-1):
        run.feed(task, token)


def other_token(run: Run, prompt: Tensor, place: int) -> Tensor:
    """Return the prompt with another token at this place (its last one, if it is shorter)."""
    other = prompt.clone()
    place = min(place, prompt.shape[-1] - 1)
    other[..., place] = (other[..., place] + 1) % run.configuration.vocab
    return other


def fork_a_shared_block(run: Run, prompt: Tensor) -> None:
    """Let a prompt's block stand behind another first block: equal tokens, unequal pasts."""
    block = run.configuration.block
    if block and prompt.shape[-1] > 2 * block:
        serve(run, other_token(run, prompt, 0))
