"""Rows of different lengths in one batch, padded on the left; half way through, the longest one leaves.

Rows differ, so that a row that reads another one's past is seen. All tokens are drawn: a row's end is the script's.
"""

from mutkv.workloads.prefix import decode_drawn
from mutkv.workloads.run import Run


def batch(run: Run) -> None:
    """One batch; row b's prompt is b tokens shorter than the first one's, and at least one."""
    length, steps, rows = run.configuration.prompt_length, run.configuration.steps, run.configuration.batch
    pad = [min(row, length - 1) for row in range(rows)]
    task = run.admit(run.draw(length), pad=pad)
    decode_drawn(run, task, run.draw(steps - steps // 2))
    if rows > 1:
        run.leave(task, range(1, rows))
    decode_drawn(run, task, run.draw(steps // 2, rows - 1 or 1))
