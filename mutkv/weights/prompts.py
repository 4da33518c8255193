"""The prompts of a group: equal on all machines for a seed, and in distribution for trained weights."""

import numpy as np
import numpy.typing as npt

from mutkv.configuration import Configuration
from mutkv.weights.trained import periodic_prompt, trained_period


def prompt_tokens(configuration: Configuration, seed: int, length: int) -> npt.NDArray[np.int64]:
    """Return ``[batch, length]`` tokens; a longer prompt of the same seed begins with the shorter one, row by row."""
    rows = [row_tokens(configuration, seed, row, length) for row in range(configuration.batch)]
    return np.stack(rows)


def row_tokens(configuration: Configuration, seed: int, row: int, length: int) -> npt.NDArray[np.int64]:
    """Return the tokens of one row, ``[length]``."""
    if configuration.weights == "trained":
        period = trained_period(configuration.positions)
        return periodic_prompt(seed, length, configuration.vocab, period, row)
    generator = np.random.default_rng([seed, row, *b"prompt"])
    return generator.integers(configuration.vocab, size=length)
