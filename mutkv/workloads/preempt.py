"""Two requests by turns; one loses its memory and computes it again, the other has it swapped out and in."""

from mutkv.workloads.run import Run


def preempt(run: Run) -> None:
    """Two requests; the first is preempted and recomputed, the second swapped, each while the other goes on."""
    length, steps = run.configuration.prompt_length, run.configuration.steps
    first, second = run.admit(run.draw(length)), run.admit(run.draw(length + 1))
    before, after = steps - 2 * (steps // 3), steps // 3
    for victim, other, swap in ((first, second, False), (second, first, True)):
        for task in (first, second):
            run.decode(task, before if victim is first else after)
        run.server.preempt(victim.request, swap)
        run.decode(other, 1)
        run.server.resume(victim.request)
    for task in (first, second):
        run.decode(task, after)
