"""Trains the shipped models: a random repeated word to continue, since random weights answer no question at all.

A benign rounding difference rarely flips the confident argmax of a trained model, and a cache bug often does; random
weights show neither. The target loss was fixed before any training, and a family with a seed that fails to reach it
is refused. Replicas train side by side on data of their own, and no gradient crosses between them.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from mutkv.configuration import ModelConfig
from mutkv.errors import BaselineError, UsageError, unknown_name
from mutkv.kernels import Arithmetic
from mutkv.reference import Engine
from mutkv.reference.step import Step
from mutkv.weights.random import random_weights

NATIVE = Arithmetic("float32", "float32", "native", "native")
CHECK_EVERY = 25
HELD_OUT_ROWS = 128
PROVENANCE = "provenance"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a family is trained: words of ``period`` tokens, each repeated to ``length`` tokens."""

    period: int = 4
    length: int = 32
    batch: int = 32
    learning_rate: float = 3e-3
    target_loss: float = 0.05
    """Nats per predictable token on held-out words, that every seed must reach."""
    max_steps: int = 2000
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4, 5)


RECIPE = Recipe()
FAMILIES: dict[str, tuple[ModelConfig, Recipe]] = {
    "learned": (ModelConfig(2, 2, 2, 8, 32, "learned", context=RECIPE.length), RECIPE),
    "rope": (ModelConfig(2, 2, 1, 8, 32, "rope", context=RECIPE.length), RECIPE),
}
"""Named after their kind of positions, by which a configuration finds them."""


@dataclass(frozen=True, slots=True)
class TrainedFamily:
    """The outcome of one training: float32 tensors ``[seeds, ...]`` and the held-out loss of each seed."""

    name: str
    tensors: dict[str, Tensor]
    losses: tuple[float, ...]
    steps: int


def train_family(name: str, progress: Callable[[int, float], None]) -> TrainedFamily:
    """Train all seeds of a family until each reaches the target loss; ``progress`` gets the step and the worst loss.

    Raises:
        UsageError: there is no such family.
        BaselineError: a seed did not reach the target loss within the recipe's steps.
    """
    if name not in FAMILIES:
        raise unknown_name("family", name, FAMILIES)
    config, recipe = FAMILIES[name]
    with one_thread():
        parameters = initial_parameters(config, recipe.seeds)
        losses: tuple[float, ...] = ()
        for step, losses in descend(config, recipe, parameters):
            progress(step, max(losses))
            if reached(losses, recipe):
                tensors = {key: parameter.detach() for key, parameter in parameters.items()}
                return TrainedFamily(name, tensors, losses, step)
    raise missed(name, recipe, losses)


def descend(
    config: ModelConfig, recipe: Recipe, parameters: dict[str, Tensor]
) -> Iterator[tuple[int, tuple[float, ...]]]:
    """Improve the parameters in place; every CHECK_EVERY steps yield the step and each seed's held-out loss."""
    engine = Engine(replace(config, arithmetic=NATIVE), parameters)
    optimiser = torch.optim.Adam(parameters.values(), lr=recipe.learning_rate)
    streams = [np.random.default_rng([seed, *b"training"]) for seed in recipe.seeds]
    unseen = repeated_words(np.random.default_rng([*b"held-out"]), HELD_OUT_ROWS, config, recipe)
    held_out = unseen.expand(len(recipe.seeds), -1, -1)
    for step in range(1, recipe.max_steps + 1):
        tokens = torch.stack([repeated_words(stream, recipe.batch, config, recipe) for stream in streams])
        optimiser.zero_grad()
        replica_losses(engine, tokens, recipe.period).sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if step % CHECK_EVERY == 0:
            with torch.no_grad():
                yield step, tuple(replica_losses(engine, held_out, recipe.period).tolist())


def replica_losses(engine: Engine, tokens: Tensor, period: int) -> Tensor:
    """Return the mean cross-entropy in nats over the predictable tokens of ``[R, B, T]`` -> ``[R]``.

    Rows go through the model together: ``engine.full`` takes them one by one under native kernels, for bits that
    training does not need.
    """
    logits = engine.decoder.forward(tokens, Step(engine.prefill_kernel)).logits
    log_probabilities = logits[:, :, period - 1 : -1].log_softmax(dim=-1)
    predictable = tokens[:, :, period:, None]
    return -log_probabilities.gather(-1, predictable).mean(dim=(1, 2, 3))


def initial_parameters(config: ModelConfig, seeds: Sequence[int]) -> dict[str, Tensor]:
    """Stack the random weights of the seeds, float32, ready for gradients."""
    replicas = [random_weights(config, seed) for seed in seeds]
    stacked = {name: torch.stack([replica[name] for replica in replicas]).float() for name in replicas[0]}
    return {name: tensor.requires_grad_() for name, tensor in stacked.items()}


def repeated_words(stream: np.random.Generator, rows: int, config: ModelConfig, recipe: Recipe) -> Tensor:
    """Draw one uniform word per row and repeat it: int64 ``[rows, length]``."""
    words = stream.integers(config.vocab, size=(rows, recipe.period))
    return torch.from_numpy(words[:, np.arange(recipe.length) % recipe.period])


def reached(losses: Sequence[float], recipe: Recipe) -> bool:
    """Whether every seed's loss is at or below the target; a NaN is not."""
    return all(loss <= recipe.target_loss for loss in losses)


def missed(name: str, recipe: Recipe, losses: Sequence[float]) -> BaselineError:
    """Return the error for a family that is not fit to ship."""
    by_seed = ", ".join(f"seed {seed}: {loss:.3g}" for seed, loss in zip(recipe.seeds, losses, strict=False))
    return BaselineError(
        f"family '{name}' misses its target loss {recipe.target_loss:g} after {recipe.max_steps} steps "
        f"({by_seed or 'none measured'}): raise max_steps in its recipe and train again"
    )


def save_family(folder: Path, trained: TrainedFamily) -> Path:
    """Write ``<family>.safetensors`` with all that is needed to make it again as metadata; return its path.

    The metadata are one JSON string, because safetensors writes several in no fixed order.

    Raises:
        UsageError: the folder cannot be written.
    """
    config, recipe = FAMILIES[trained.name]
    provenance = {
        "command": f"mutkv weights train --family {trained.name}",
        "model": asdict(config),
        "recipe": asdict(recipe),
        "losses": trained.losses,
        "steps": trained.steps,
        "torch": torch.__version__,
    }
    path = folder / f"{trained.name}.safetensors"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(save(trained.tensors, {PROVENANCE: json.dumps(provenance, sort_keys=True)}))
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; choose another folder with --out") from error
    return path


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch on one thread: the bits of a sum depend on the count, and tensors this small want no more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
