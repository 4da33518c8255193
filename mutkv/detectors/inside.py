"""Looking inside an engine: the cases of a block run again, and shown to a detector one (request, row) at a time.

A recording holds the rows of one request, so every request of a case is shown the same ones.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from mutkv.detectors.blocks import Block
from mutkv.detectors.case import Inside
from mutkv.detectors.detector import Detector
from mutkv.detectors.live import MeteredEngine, tokens_fed
from mutkv.detectors.verdict import Verdict, failed, judge_live, judge_one, worst
from mutkv.errors import Unsupported, UsageError
from mutkv.grid.replay import Replay, Subject, engine_of, replay


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
    verdicts = []
    for request, row in block.sequences():
        try:
            inside = held(detector.needs, again, place, row)
        except Unsupported as error:
            return failed(error)
        verdicts.append(judge_one(detector, block.case(place, detector.needs, inside).at(request=request, row=row)))
    return worst(verdicts)


def held(needs: str, again: Replay, replica: int, row: int) -> tuple[Inside, Inside]:
    """Return what the cached and the full path of one row held, as the detector's own tensors."""

    def own(layers: Iterable[Tensor]) -> tuple[Tensor, ...]:
        return tuple(layer[replica, row].to("cpu", torch.float64, copy=True) for layer in layers)

    trace, recording = again.trace, again.recording
    if needs == "kv":
        keys, values = zip(*recording.stored, strict=True)
        return Inside(own(keys), own(values)), Inside(own(trace.keys), own(trace.values))
    if not recording.traces:
        raise Unsupported("sessions of this engine keep no hidden states")
    by_layer = zip(*(part.hidden for part in recording.traces), strict=True)
    return Inside(hidden=own(torch.cat(parts, dim=2) for parts in by_layer)), Inside(hidden=own(trace.hidden))


def judge_engine(detector: Detector, block: Block, place: int, subject: Subject) -> Verdict:
    """Call a live checker on the engine of one case."""
    engine = MeteredEngine(engine_of(subject, block.configuration(place)))
    return judge_live(detector, engine, lambda: tokens_fed(engine))
