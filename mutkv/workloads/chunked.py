"""Prompts prefilled in one, two and three pieces of different lengths: each later piece is many queries over a past."""

from mutkv.workloads.run import Run


def chunked(run: Run) -> None:
    """Three requests with prompts of one length, in 1, 2 and 3 chunks."""
    length, steps = run.configuration.prompt_length, run.configuration.steps
    for count in (1, 2, 3):
        task = run.admit(run.draw(length), chunks=uneven(length, count))
        run.decode(task, steps)
        run.finish(task)


def uneven(length: int, count: int) -> list[int]:
    """Cut a length into up to ``count`` pieces, no two alike where it is long enough, a middle one the longest.

    >>> uneven(10, 3)
    [2, 5, 3]
    """
    if count == 1 or length < count:
        return [length]
    first = max(length // (count + 2), 1)
    if count == 2:
        return [first, length - first]
    last = min(first + 1, length - first - 1)
    return [first, length - first - last, last]
