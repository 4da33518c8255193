"""Prompts around the length of a block: one short of it, as long, one longer; then two that share a block and part."""

from mutkv.workloads.prefix import decode_drawn
from mutkv.workloads.run import Run


def blocks(run: Run) -> None:
    """Requests with prompts of b − 1, b and b + 1 tokens; the last one is forked, and both go on by turns."""
    block, steps = run.configuration.block or run.configuration.prompt_length, run.configuration.steps
    for length in (max(block - 1, 1), block):
        task = run.admit(run.draw(length))
        decode_drawn(run, task, run.draw(steps))
        run.finish(task)
    task = run.admit(run.draw(block + 1))
    other = run.fork(task)
    for _ in range(steps):
        for each in (task, other):
            decode_drawn(run, each, run.draw(1))
