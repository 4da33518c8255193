"""Does a cached prefix change training? Its keys and values arrive as constants, so no gradient reaches what made them.

The same model is trained on the loss of a suffix in three ways that agree in every forward pass of the first step:
gradients flow through the prefix (``through``), the prefix is computed anew at each step but without gradients
(``constant``), or it is computed once with the initial weights and kept (``frozen``). The claim under study is from an
article whose own model has cosine 0.857 and losses 0.059 (through) and 1.346 (constant) at a prefix of 6 of 12 tokens.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from mutkv.configuration import Configuration
from mutkv.errors import UsageError
from mutkv.protocol import Engine, Session
from mutkv.studies.study import Measurement, Subject
from mutkv.weights.train import HELD_OUT_ROWS, RECIPE, one_thread, repeated_words

PERIOD = 6
"""Tokens of a word; twelve tokens hold it twice, and what is to be predicted in the suffix stands in the prefix."""
BUDGET = 300
"""Steps at which the ways are compared: on seeds 0 to 5 and a prefix of 6, the first check with ``through`` at or below
0.06 nats (mean 0.055), the article's own end of training. Other seeds than those are measured."""
CURVE_STEPS = 600
"""Steps of the loss curves: twice the budget, to tell a slower way from one that does not arrive."""
CHECK_EVERY = 50

Prefill = Callable[[Engine, Tensor], Session]
"""Returns a session that holds a prefix ``[R, B, prefix]``."""


def measure(subject: Subject) -> Iterator[Measurement]:
    """Measure both gradients at the initial weights, then train each way from there on the same data.

    ``prompt_length`` is the prefix and ``steps`` the suffix, in tokens. Losses are means in nats per predictable suffix
    token, on words not drawn for training. The optimiser (Adam), rate and batch are those of the trained families.
    """
    with one_thread():
        measured = [*gradient_cosines(subject), *held_out_losses(subject)]
    yield from measured


def check(configuration: Configuration) -> None:
    """Raise UsageError where no token is both predicted from the suffix and decided by an earlier period."""
    if max(configuration.prompt_length, PERIOD - 1) > configuration.tokens - 2:
        raise UsageError(
            f"prompt_length {configuration.prompt_length} with steps {configuration.steps} has nothing to predict: "
            f"use at least 2 steps, and at least {PERIOD + 1} tokens in all"
        )


def gradient_cosines(subject: Subject) -> Iterator[Measurement]:
    """Compare the gradients of both ways on the first training batch: over all parameters, then part by part."""
    tokens = next(batches(subject))
    flowing, cut = (named_parts(subject, gradients(subject, prefill, tokens)) for prefill in (through, constant))
    whole = cosine(torch.cat([*flowing.values()], dim=1), torch.cat([*cut.values()], dim=1))
    yield Measurement("gradient cosine", "all", whole)
    for part, gradient in flowing.items():
        yield Measurement("gradient cosine", part, cosine(gradient, cut[part]))


def held_out_losses(subject: Subject) -> Iterator[Measurement]:
    """Train each way; yield the losses before and at the budget, and the curves of the two ways of the claim."""
    initial = subject.make_engine(subject.config, subject.weights)
    yield Measurement("suffix loss, untrained", "all", evaluate(subject, initial, constant))
    for name, prefill in (("through", through), ("constant", constant)):
        _, curve = train(subject, prefill, CURVE_STEPS)
        yield Measurement(f"suffix loss, {name}", "all", curve[BUDGET])
        for step, losses in curve.items():
            yield Measurement(f"held-out loss, {name}", f"step {step}", losses)
    kept = frozen(initial)
    trained, curve = train(subject, kept, BUDGET)
    yield Measurement("suffix loss, frozen", "all", curve[BUDGET])
    yield Measurement("suffix loss, frozen, prefix recomputed", "all", evaluate(subject, trained, constant))


def through(engine: Engine, prefix: Tensor) -> Session:
    """Compute a prefix ``[R, B, prefix]`` into a new session; the suffix's gradient flows into it."""
    session = engine.open(prefix.shape[1])
    session.extend(prefix)
    return session


def constant(engine: Engine, prefix: Tensor) -> Session:
    """Compute a prefix ``[R, B, prefix]`` with the weights of now, without gradients: a cache that is up to date."""
    with torch.no_grad():
        return through(engine, prefix)


def frozen(initial: Engine) -> Prefill:
    """Return a way to take the prefix from the initial weights: a cache that is kept while the weights move on."""

    def prefill(engine: Engine, prefix: Tensor) -> Session:
        session = engine.open(prefix.shape[1])
        session.load(constant(initial, prefix).save())
        return session

    return prefill


def suffix_losses(engine: Engine, tokens: Tensor, prefix: int, prefill: Prefill) -> Tensor:
    """Return the mean cross-entropy in nats of ``[R, B, T]`` per replica -> ``[R]``.

    Counted are tokens that are predicted from the suffix (so position ``prefix + 1`` or later) and decided by an
    earlier period (position ``PERIOD`` or later). What the prefix's own logits predict is no loss of the suffix.
    """
    first = max(prefix, PERIOD - 1)
    logits = prefill(engine, tokens[..., :prefix]).extend(tokens[..., prefix:])  # [R, B, T - prefix, vocab]
    log_probabilities = logits[:, :, first - prefix : -1].log_softmax(dim=-1)
    return -log_probabilities.gather(-1, tokens[:, :, first + 1 :, None]).mean(dim=(1, 2, 3))


def train(subject: Subject, prefill: Prefill, steps: int) -> tuple[Engine, dict[int, list[float]]]:
    """Train from the subject's weights; return the engine and, every CHECK_EVERY steps, the held-out losses ``[R]``.

    All seeds train side by side, each on a stream of its own. A replica's loss depends on its own weights alone and
    Adam treats each number alone, so no seed feels its neighbours.
    """
    parameters = trainable(subject.weights)
    engine = subject.make_engine(subject.config, parameters)
    optimiser = torch.optim.Adam(parameters.values(), lr=RECIPE.learning_rate)
    curve = {}
    for step, tokens in zip(range(1, steps + 1), batches(subject), strict=False):
        optimiser.zero_grad()
        with torch.enable_grad():
            loss = suffix_losses(engine, tokens, subject.configuration.prompt_length, prefill).sum()
            loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if step % CHECK_EVERY == 0:
            curve[step] = evaluate(subject, engine, prefill)
    return engine, curve


def evaluate(subject: Subject, engine: Engine, prefill: Prefill) -> list[float]:
    """Return the loss of each seed on words that are the same for all, ``[R]``."""
    recipe = replace(RECIPE, period=PERIOD, length=subject.configuration.tokens)
    words = repeated_words(np.random.default_rng([*b"held-out"]), HELD_OUT_ROWS, subject.config, recipe)
    tokens = words.expand(len(subject.seeds), -1, -1)
    with torch.no_grad():
        losses: list[float] = suffix_losses(engine, tokens, subject.configuration.prompt_length, prefill).tolist()
    return losses


def batches(subject: Subject) -> Iterator[Tensor]:
    """Yield training batches ``[R, B, T]`` without end, the same on every call."""
    recipe = replace(RECIPE, period=PERIOD, length=subject.configuration.tokens)
    streams = [np.random.default_rng([seed, *b"training"]) for seed in subject.seeds]
    while True:
        yield torch.stack([repeated_words(stream, recipe.batch, subject.config, recipe) for stream in streams])


def trainable(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return copies that take gradients; the shared tensors stay as they are."""
    return {name: tensor.clone().requires_grad_() for name, tensor in weights.items()}


def gradients(subject: Subject, prefill: Prefill, tokens: Tensor) -> dict[str, Tensor]:
    """Return the gradient of each replica's loss on tokens ``[R, B, T]``, shaped as the weights, at the weights."""
    parameters = trainable(subject.weights)
    engine = subject.make_engine(subject.config, parameters)
    with torch.enable_grad():
        loss = suffix_losses(engine, tokens, subject.configuration.prompt_length, prefill).sum()
        return dict(zip(parameters, torch.autograd.grad(loss, [*parameters.values()]), strict=True))


def named_parts(subject: Subject, found: dict[str, Tensor]) -> dict[str, Tensor]:
    """Flatten to ``[R, numbers]`` by tensor name; W_q, W_k and W_v, which share a tensor, get a part each."""
    config = subject.config
    columns = [heads * config.head_dim for heads in (config.heads, config.kv_heads, config.kv_heads)]
    parts: dict[str, Tensor] = {}
    for name, gradient in found.items():
        if name.endswith(".qkv"):
            by_use = zip(("query", "keys", "values"), torch.split(gradient, columns, dim=-1), strict=True)
            parts |= {f"{name} {use}": part for use, part in by_use}
        else:
            parts[name] = gradient
    return {name: part.flatten(1) for name, part in parts.items()}


def cosine(left: Tensor, right: Tensor) -> list[float]:
    """Return the cosine of the angle between two gradients ``[R, numbers]`` per replica, in float64, ``[R]``."""
    cosines: list[float] = torch.cosine_similarity(left.double(), right.double(), dim=1).tolist()
    return cosines
