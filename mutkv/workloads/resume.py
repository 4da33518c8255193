"""A conversation of two turns, the second shorter than the first, then another user's shorter one on the same session.

What the first turn leaves behind must be whole for the second, and gone for the other user.
"""

from mutkv.workloads.run import Run


def resume(run: Run) -> None:
    """Three requests: turn one, turn two, and another conversation."""
    length, steps = run.configuration.prompt_length, run.configuration.steps
    task = run.admit(run.draw(length))
    run.decode(task, steps)
    run.turn(task, run.draw(max(length // 2, 1)))
    run.decode(task, steps)
    run.finish(task)
    other = run.admit(run.draw(max(length - 1, 1)))
    run.decode(other, steps)
