"""The trained weights that ship with the package, and prompts of the kind they were trained on.

A family is found by its kind of positions, and what it does not have is refused rather than extrapolated: a trained
model outside its structure, seeds or length is a random one that looks trained.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.torch import load_file
from torch import Tensor

from mutkv.configuration import ModelConfig, Positions
from mutkv.errors import UsageError
from mutkv.weights.train import FAMILIES

SHIPPED = Path(__file__).parent / "trained"
STRUCTURE = ("depth", "heads", "kv_heads", "head_dim", "vocab", "rope_scaling", "window")


def family(positions: Positions) -> ModelConfig:
    """Return the structure that is trained for this kind of positions; its context is the trained length."""
    return FAMILIES[positions][0]


def trained_length(positions: Positions) -> int:
    """Return how many tokens the models were trained on; learned positions have no row beyond."""
    return FAMILIES[positions][1].length


def trained_period(positions: Positions) -> int:
    """Return the number of tokens after which the models expect a repeat."""
    return FAMILIES[positions][1].period


def trained_replica(config: ModelConfig, seed: int) -> dict[str, Tensor]:
    """Return one replica's tensors, float64 on the CPU, as ``random_weights`` shapes them.

    The table of learned positions has ``trained_length`` rows, whatever ``config.context`` is.

    Raises:
        UsageError: nothing of this structure or with this seed was trained.
    """
    if config.positions not in FAMILIES:
        known = " or ".join(FAMILIES)
        raise UsageError(f"no trained weights for {config.positions} positions: use {known}, or weights 'random'")
    trained, recipe = FAMILIES[config.positions]
    for name in STRUCTURE:
        refuse_other(config.positions, name, getattr(config, name), (getattr(trained, name),))
    refuse_other(config.positions, "seed", seed, recipe.seeds)
    replica = recipe.seeds.index(seed)
    return {name: tensor[replica].double() for name, tensor in shipped(config.positions).items()}


def periodic_prompt(seed: int, length: int, vocab: int, period: int, row: int = 0) -> npt.NDArray[np.int64]:
    """Return a prompt as the trained models know them, int64 ``[length]``: one uniform word, repeated.

    The word is drawn per seed and row from a stream that training does not use, so a longer prompt of the same seed
    and row begins with the shorter one.
    """
    word = np.random.default_rng([seed, row, *b"prompt"]).integers(vocab, size=period)
    return word[np.arange(length) % period]


def refuse_other(positions: Positions, name: str, asked: int | str, trained: tuple[int | str, ...]) -> None:
    """Refuse a value that the family does not have."""
    if asked not in trained:
        known = ", ".join(map(str, trained))
        raise UsageError(
            f"no trained weights with {name} {asked} for {positions} positions: use {name} {known} or weights 'random'"
        )


@lru_cache
def shipped(positions: Positions) -> dict[str, Tensor]:
    """Load a family's file once: float32 tensors ``[seeds, ...]``, never to be changed in place."""
    return load_file(SHIPPED / f"{positions}.safetensors")
