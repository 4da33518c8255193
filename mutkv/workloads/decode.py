"""Prefill a prompt, then decode one token at a time: the plainest use of a cache.

Step k are the logits after k tokens were decoded, step 0 the prefill's last position. An empty prompt has no step 0:
its first token is given and fed at step 1.
"""

from mutkv.workloads.run import Run


def decode(run: Run) -> None:
    """One request."""
    task = run.admit(run.draw(run.configuration.prompt_length))
    run.decode(task, run.configuration.steps)
