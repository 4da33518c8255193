"""The gradient of the loss by autograd against central differences, tensor by tensor.

Whatever is said about gradients through a cache rests on the full path's gradient being right. The differences know
nothing of autograd: they run only the forward pass, and that in the compiled form, of which there is no backward.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F  # noqa: N812 - torch's convention
from torch import Tensor

from mutkv.configuration import Configuration
from mutkv.errors import UsageError
from mutkv.protocol import Engine
from mutkv.studies.study import Measurement, Subject, largest
from mutkv.weights import prompt_tokens

CHUNK = 256
"""Entries that are moved in one call, each on a replica of its own; it bounds the memory."""

FEWEST_TOKENS = 2
"""The first token has none before it that could predict it."""


def measure(subject: Subject) -> Iterator[Measurement]:
    """Measure, per weight tensor, the gradient of ``loss`` on random tokens: prompt_length + steps of each row.

    Values are float64 ``[R]``, in nats per unit of the weight: ``gradient error`` is max|autograd - difference|,
    ``gradient size`` max|autograd|. ``relative error`` is the error by the larger side's maximum, without a unit.
    Every entry counts, also those that are not used (tokens that do not occur, positions beyond the sequence): both
    sides must be exactly 0 there, and a gradient that leaked into them would be an error like any other.
    """
    count = subject.configuration.tokens
    drawn = [torch.from_numpy(prompt_tokens(subject.configuration, seed, count)) for seed in subject.seeds]
    tokens = torch.stack(drawn).to(subject.config.device)  # [R, B, T]
    by_autograd = autograd(subject, tokens)
    for name, gradient in by_autograd.items():
        by_difference = torch.stack([differences(subject, name, index, tokens) for index in range(len(tokens))])
        error = largest(gradient, by_difference)
        size, other = (largest(side, torch.zeros_like(side)) for side in (gradient, by_difference))
        yield Measurement("gradient error", name, error)
        yield Measurement("gradient size", name, size)
        yield Measurement("relative error", name, list(map(relative, error, size, other)))


def check(configuration: Configuration) -> None:
    """Raise UsageError where no token is predicted."""
    if configuration.tokens < FEWEST_TOKENS:
        count = f"prompt_length + steps is {configuration.tokens}"
        raise UsageError(f"{count}, and predicts no token: use at least {FEWEST_TOKENS}")


def loss(engine: Engine, tokens: Tensor) -> Tensor:
    """Return the mean cross-entropy, in nats, of each next token of ``[R, B, T]``, per replica, ``[R]``."""
    logits = engine.full(tokens[..., :-1].clone())  # [R, B, T - 1, vocab]
    targets = tokens[..., 1:].flatten()
    per_token = F.cross_entropy(logits.flatten(0, 2), targets, reduction="none")
    return per_token.view(len(tokens), -1).mean(dim=1)


def autograd(subject: Subject, tokens: Tensor) -> dict[str, Tensor]:
    """Return the gradient of each replica's loss for every tensor, ``[R, ...]``, through the kernels' plain form."""
    with torch.enable_grad():
        leaves = {name: weight.detach().clone().requires_grad_() for name, weight in subject.weights.items()}
        total = loss(subject.make_engine(subject.config, leaves), tokens).sum()  # replicas share nothing
        return dict(zip(leaves, torch.autograd.grad(total, list(leaves.values())), strict=True))


def differences(subject: Subject, name: str, replica: int, tokens: Tensor) -> Tensor:
    """Return the slope of one replica's loss along each entry of one tensor, moved alone; the tensor's shape ``[...]``.

    (loss(w + h) - loss(w - h)) / 2h is off by about h² of truncation and eps / h of rounding. They balance at
    h = eps^(1/3), 6e-6 in float64, where each is about 4e-11 for a loss and derivatives of size 1.
    """
    weight = subject.weights[name][replica]
    step = torch.finfo(weight.dtype).eps ** (1 / 3)
    slopes = []
    for entries in torch.split(torch.arange(weight.numel(), device=weight.device), CHUNK):
        own = torch.arange(len(entries), device=weight.device), entries  # entry i moves on replica i
        up, down = (weight.flatten().repeat(len(entries), 1) for _ in range(2))
        up[own] += step
        down[own] -= step
        rise = losses(subject, name, up, replica, tokens) - losses(subject, name, down, replica, tokens)
        slopes.append(rise / (up[own] - down[own]).double())  # not 2h: the step that was left after rounding
    return torch.cat(slopes).view(weight.shape)


def losses(subject: Subject, name: str, moved: Tensor, replica: int, tokens: Tensor) -> Tensor:
    """Return one replica's loss with one tensor replaced by each of C flat ones ``[C, entries]``, ``[C]``."""
    count = len(moved)
    weights = {other: weight[replica].expand(count, *weight.shape[1:]) for other, weight in subject.weights.items()}
    weights[name] = moved.view(weights[name].shape)
    engine = subject.make_engine(subject.config, weights)
    return loss(engine, tokens[replica].expand(count, *tokens.shape[1:])).double()


def relative(error: float, *sizes: float) -> float:
    """Return the error by the larger size; 0 where all are 0."""
    return error / max(sizes) if error else 0.0
