"""Looking inside an engine: the cases of a block run again, and shown to a detector one (request, row) at a time.

A cache is looked into when a request or a row of it ends.
"""

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from mutkv.detectors.blocks import Block
from mutkv.detectors.case import Inside
from mutkv.detectors.detector import Detector
from mutkv.detectors.live import MeteredEngine, tokens_fed
from mutkv.detectors.verdict import Verdict, failed, judge_live, judge_one, worst
from mutkv.errors import Unsupported, UsageError
from mutkv.grid.replay import Replay, Subject, engine_of, replay

Layers = tuple[Tensor, ...]


def judge_inside(detectors: Sequence[Detector], block: Block, subject: Subject) -> list[list[Verdict]]:
    """Return each detector's verdicts on the cases of one subject, ``[detectors][C]``, from one run of them all."""
    try:
        again = replay(subject, block.group, block.seeds)
    except UsageError:
        raise
    except Exception as error:  # it ran when it was recorded, perhaps without the other seeds
        if len(block.seeds) == 1:
            return [[failed(error)] for _ in detectors]
        alone = [judge_inside(detectors, block.take([place]), subject) for place in range(len(block.seeds))]
        return [[verdict for [verdict] in verdicts] for verdicts in zip(*alone, strict=True)]
    return [[judge_replica(one, block, place, again) for place in range(len(block.seeds))] for one in detectors]


def judge_replica(detector: Detector, block: Block, place: int, again: Replay) -> Verdict:
    """Call a detector once per (request, row) of a case; the worst counts."""
    try:
        shown = list(held(again, place) if detector.needs == "kv" else hidden(again, block, place))
    except Unsupported as error:
        return failed(error)
    return worst(
        [
            judge_one(detector, block.case(place, detector.needs, inside).at(request=request, row=row))
            for request, row, inside in shown
        ]
    )


def held(again: Replay, replica: int) -> Iterator[tuple[int, int, tuple[Inside, Inside]]]:
    """Yield request, row and what the cached and the full path held of it at its end, as the detector's own tensors.

    Rows that a cache let go by design (they are NaN) are left out of both.
    """
    for part in again.recording.held:
        trace = again.traces[again.recording.place(part.conversation)]
        keys, values = zip(*part.stored, strict=True)
        for inside, row in enumerate(part.rows):
            cached = [own(layers, replica, inside) for layers in (keys, values)]
            full = [own(layers, replica, inside) for layers in (trace.keys, trace.values)]
            yield part.request, row, (Inside(*map(kept, cached, cached)), Inside(*map(kept, full, cached)))


def kept(layers: Layers, stored: Layers) -> Layers:
    """Return the positions at which rows are stored, of each layer."""
    return tuple(layer[where(mine, len(layer))] for layer, mine in zip(layers, stored, strict=True))


def where(stored: Tensor, length: int) -> Tensor:
    """Return which of ``length`` positions were not let go; those beyond the stored ones are missing, and count."""
    gone = stored.isnan().flatten(1).all(dim=1)[:length]
    return torch.cat([~gone, gone.new_ones(length - len(gone))])


def hidden(again: Replay, block: Block, replica: int) -> Iterator[tuple[int, int, tuple[Inside, Inside]]]:
    """Yield request, row and the hidden states of both paths, where a script has one request.

    Raises:
        Unsupported: there are several, or sessions of this engine keep no hidden states.
    """
    if block.group.workload != "decode":
        raise Unsupported(f"hidden states are recorded for the workload decode, not for {block.group.workload}")
    if not again.recording.traces:
        raise Unsupported("sessions of this engine keep no hidden states")
    parts = zip(*(part.hidden for part in again.recording.traces), strict=True)
    by_layer = [torch.cat(layers, dim=2) for layers in parts]
    for request, row in block.sequences():
        full = own(again.traces[0].hidden, replica, row)
        yield request, row, (Inside(hidden=own(by_layer, replica, row)), Inside(hidden=full))


def own(layers: Iterable[Tensor], replica: int, row: int) -> Layers:
    """Return one row of one replica per layer, copied: a detector may write into it."""
    return tuple(layer[replica, row].to("cpu", torch.float64, copy=True) for layer in layers)


def judge_engine(detector: Detector, block: Block, place: int, subject: Subject) -> Verdict:
    """Call a live checker on the engine of one case."""
    engine = MeteredEngine(engine_of(subject, block.configuration(place)))
    return judge_live(detector, engine, lambda: tokens_fed(engine))
