"""A request is saved while it runs; it goes on, and the saved state is restored twice."""

from mutkv.workloads.run import Run


def save_restore(run: Run) -> None:
    """One request that goes on after it was saved, then two that begin from the saved state."""
    steps = run.configuration.steps
    task = run.admit(run.draw(run.configuration.prompt_length))
    run.decode(task, steps - steps // 2)
    saved = run.save(task)
    run.decode(task, steps // 2)
    for _ in range(2):
        run.decode(run.restore(saved), steps // 2)
