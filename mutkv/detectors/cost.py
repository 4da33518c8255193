"""What looking costs: tokens that a check feeds through the full path, beyond the run that serves the user.

A recompute at step k is one pass over the prompt and k tokens, for every row of the batch; it gives the logits of all
steps before k as well.
"""

import numpy as np

from mutkv.configuration import Configuration
from mutkv.workloads import layout_of


def full_pass(configuration: Configuration, last_step: int | None = None) -> int:
    """Return the tokens of one full pass over each (request, row) up to ``last_step``, or to its last one."""
    if configuration.workload == "decode":
        steps = configuration.steps if last_step is None else min(last_step, configuration.steps)
        return configuration.batch * (configuration.prompt_length + steps)
    layout = layout_of(configuration.group)
    within = np.ones(len(layout), np.bool_) if last_step is None else layout.step <= last_step
    tokens: dict[tuple[int, int], int] = {}
    rows = zip(layout.request[within], layout.row[within], layout.position[within], strict=True)
    for request, row, position in rows:
        tokens[request, row] = max(tokens.get((request, row), 0), int(position) + 1)
    return sum(tokens.values())


def prefill_pass(configuration: Configuration) -> int:
    """Return the tokens of a full pass over the prompt."""
    return full_pass(configuration, 0)


def one_step_pass(configuration: Configuration) -> int:
    """Return the tokens of a full pass over the prompt and one token."""
    return full_pass(configuration, 1)


def eight_step_pass(configuration: Configuration) -> int:
    """Return the tokens of a full pass up to step 7, the eighth observation."""
    return full_pass(configuration, 7)
