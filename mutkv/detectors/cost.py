"""What looking costs: tokens that a check feeds through the full path, beyond the run that serves the user.

A recompute at step k is one pass over the prompt and k tokens, for every row of the batch; it gives the logits of all
steps before k as well.
"""

from mutkv.configuration import Configuration


def full_pass(configuration: Configuration, last_step: int | None = None) -> int:
    """Return the tokens of one full pass up to ``last_step``, or to the last one."""
    steps = configuration.steps if last_step is None else min(last_step, configuration.steps)
    return configuration.batch * (configuration.prompt_length + steps)


def prefill_pass(configuration: Configuration) -> int:
    """Return the tokens of a full pass over the prompt."""
    return full_pass(configuration, 0)


def one_step_pass(configuration: Configuration) -> int:
    """Return the tokens of a full pass over the prompt and one token."""
    return full_pass(configuration, 1)


def eight_step_pass(configuration: Configuration) -> int:
    """Return the tokens of a full pass up to step 7, the eighth observation."""
    return full_pass(configuration, 7)
