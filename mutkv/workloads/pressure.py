"""More prompts than the pool has blocks: it fills once and is used again, then the first prompt comes back."""

from mutkv.workloads.prefix import serve
from mutkv.workloads.run import Run


def pressure(run: Run) -> None:
    """One prompt twice, then others until every block was used, then the first one again."""
    length, block = run.configuration.prompt_length, run.configuration.block or 1
    prompt = run.draw(length)
    for _ in range(2):
        serve(run, prompt)
    used = max((length + run.configuration.steps) // block, 1)
    for _ in range(-(-run.configuration.pool // used) if run.configuration.block else 2):
        serve(run, run.draw(length))
    serve(run, prompt)
