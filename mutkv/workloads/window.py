"""Prompts around the length of a sliding window: one short of it, as long, one longer, twice as long."""

from mutkv.workloads.run import Run


def window(run: Run) -> None:
    """Four requests with prompts of W − 1, W, W + 1 and 2 W tokens; without a window, of the prompt's length W."""
    width = run.configuration.window or run.configuration.prompt_length
    for length in (max(width - 1, 1), width, width + 1, 2 * width):
        task = run.admit(run.draw(length))
        run.decode(task, run.configuration.steps)
        run.finish(task)
