"""How far causality holds, layer by layer: what an appended token moves, and what a cache then keeps wrong.

A cache is right only because appending a token leaves everything before it as it was. This study measures that premise
on the full path alone, then its consequence: the cached path against the full path, and against the clean engine.
"""

from collections import defaultdict
from collections.abc import Iterator

import torch
from torch import Tensor

from mutkv.protocol import Engine, Trace
from mutkv.reference import Engine as CleanEngine
from mutkv.studies.study import Measurement, Subject, largest
from mutkv.workloads import Recording, record

PARTS = {"residual": "hidden", "keys": "keys", "values": "values"}
"""What is compared, and the field of a ``Trace`` that holds it per layer."""

QUANTITIES = (*(f"append: {part}" for part in PARTS), *(f"cache: {part}" for part in PARTS), "infection")

Pair = tuple[str, int, Tensor, Tensor]
"""A quantity, a layer counted from 0, and two tensors ``[R, B, n, ...]`` that should be equal."""


def measure(subject: Subject) -> Iterator[Measurement]:
    """Measure, along the clean engine's greedy tokens, the largest absolute difference per quantity and layer.

    Values are float64 ``[R]``, in the units of what is compared; 0 where there is no decode step to compare.

    - ``append: residual``, ``keys``, ``values``: what appending one token changes at the positions before it, in the
      engine's own full path, over all decode steps.
    - ``cache: residual``: each decoded token's residual stream, cached against recomputed at that step.
    - ``cache: keys``, ``values``: the rows stored at the end against a recompute of all tokens. A missing row counts
      whole: the rule of the detector ``kv-compare``.
    - ``infection``: stored rows and attention outputs against the clean engine's, by the same rule. The first layer
      above 0 is the dataset's ``first_infected_layer``.
    """
    worst: dict[tuple[str, int], Tensor] = defaultdict(lambda: torch.zeros(len(subject.seeds), dtype=torch.float64))
    for quantity, layer, left, right in pairs(subject):
        length = max(left.shape[2], right.shape[2])
        difference = largest(padded(left, length), padded(right, length))
        # torch's maximum keeps a NaN, which Python's max may lose.
        worst[quantity, layer] = torch.maximum(worst[quantity, layer], torch.tensor(difference, dtype=torch.float64))
    for quantity in QUANTITIES:
        for layer in range(subject.config.depth):
            yield Measurement(quantity, f"layer {layer + 1}", worst[quantity, layer].tolist())


def pairs(subject: Subject) -> Iterator[Pair]:
    """Run the clean engine and the one under test; yield everything that is compared."""
    clean = record(CleanEngine(subject.config, subject.weights), subject.configuration, subject.seeds)
    engine = subject.make_engine(subject.config, subject.weights)
    recording = record(engine, subject.configuration, subject.seeds, clean)
    [conversation] = clean.conversations
    yield from against_full(engine, recording, conversation.tokens, subject.configuration.prompt_length)
    yield from against_clean(recording, clean)


def against_full(engine: Engine, recording: Recording, tokens: Tensor, prompt_length: int) -> Iterator[Pair]:
    """Recompute tokens ``[R, B, T]`` at every step; yield both the full path's own changes and the cached path."""
    total = tokens.shape[-1]
    before: Trace | None = None
    for length in range(max(prompt_length, 1), total + 1):
        full = engine.trace(tokens[..., :length].clone())  # an engine under test may write in place
        if before is not None:
            yield from appended(before, full)
        if length > prompt_length:
            decoded = recording.traces[length - total - 1]  # the last trace is that of the last token
            for layer, (cached, recomputed) in enumerate(zip(decoded.hidden, full.hidden, strict=True)):
                yield "cache: residual", layer, cached, recomputed[:, :, -1:]
        before = full
    assert before is not None, "a run without a token"
    for layer, (keys, values) in enumerate(recording.stored):
        yield "cache: keys", layer, keys, before.keys[layer]
        yield "cache: values", layer, values, before.values[layer]


def appended(before: Trace, after: Trace) -> Iterator[Pair]:
    """Yield the positions of a full path, before and after one more token was appended."""
    length = before.logits.shape[2]
    for part, field in PARTS.items():
        for layer, (old, new) in enumerate(zip(getattr(before, field), getattr(after, field), strict=True)):
            yield f"append: {part}", layer, old, new[:, :, :length]


def against_clean(recording: Recording, clean: Recording) -> Iterator[Pair]:
    """Yield stored rows and attention outputs of the cached path beside the clean engine's."""
    for layer in range(len(clean.stored)):
        for stored, right in zip(recording.stored[layer], clean.stored[layer], strict=True):
            yield "infection", layer, stored, right
        yield "infection", layer, recording.attended(layer), clean.attended(layer)


def padded(rows: Tensor, length: int) -> Tensor:
    """Return rows ``[R, B, n, ...]`` followed by zeros, ``[R, B, length, ...]``."""
    missing = rows.new_zeros(*rows.shape[:2], length - rows.shape[2], *rows.shape[3:])
    return torch.cat([rows, missing], dim=2)
