"""From what a detector returns to a verdict, and from what it raises to ``crashed``: nothing it does ends a scoring."""

import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from mutkv.detectors.detector import Detector
from mutkv.errors import Unsupported
from mutkv.grid.limits import time_limit

LIVE_SECONDS = 600.0
"""A live checker on a mutant may loop for ever; one that takes longer on a case has crashed there."""
LONGEST_REASON = 160


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a detector says of one case."""

    score: float = 0.0
    flag: bool = False
    crash: str | None = None
    """Why there is no score, in one line; such a verdict is not flagged and has score 0."""
    cost: float = math.nan
    """Tokens, where they were counted."""
    applicable: bool = True
    """False where the engine cannot give what the detector asks for: no verdict at all."""


class MalformedError(Exception):
    """A detector returned what is no score."""


def judge_one(detector: Detector, argument: Any) -> Verdict:
    """Call a detector on one case (or engine)."""
    try:
        return interpret(detector.function(argument), detector.threshold)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also SystemExit and pytest.fail: a user's code may use either to say no
        return failure(error)


def judge_batch(detector: Detector, cases: Any, count: int) -> list[Verdict]:
    """Call a batched detector on C cases; where it gives no C scores, all have crashed."""
    try:
        returned = detector.function(cases)
        scores, flags = returned if isinstance(returned, tuple) else (returned, None)
        pairs = zip(items(scores, count), [None] * count if flags is None else items(flags, count), strict=True)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return [failure(error)] * count
    return [judged_pair(score, flag, detector.threshold) for score, flag in pairs]


def judge_live(detector: Detector, engine: Any, tokens: Callable[[], int]) -> Verdict:
    """Call a live checker on an engine; ``tokens`` says how many it has fed so far."""
    try:
        with time_limit(LIVE_SECONDS):
            returned = detector.function(engine)
        verdict = interpret(0.0 if returned is None else returned, detector.threshold)
    except AssertionError:
        verdict = Verdict(1.0, True)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        verdict = failure(error)
    return replace(verdict, cost=float(tokens()))


def worst(verdicts: list[Verdict]) -> Verdict:
    """Return one verdict for parts of a case: a crash of any, else the highest score and any flag."""
    for verdict in verdicts:
        if verdict.crash or not verdict.applicable:
            return verdict
    return Verdict(max(verdict.score for verdict in verdicts), any(verdict.flag for verdict in verdicts))


def failure(error: BaseException) -> Verdict:
    """Return the verdict for an exception: not applicable for what an engine cannot do, else crashed."""
    if isinstance(error, Unsupported):
        return Verdict(crash=str(error), applicable=False)
    if isinstance(error, MalformedError):
        return Verdict(crash=str(error))
    text = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_REASON]
    # frame 0 is the call in this module, frame 1 the detector's own line
    frames = traceback.extract_tb(error.__traceback__)[1:2]
    place = "".join(f" ({Path(frame.filename).name} line {frame.lineno})" for frame in frames)
    return Verdict(crash=f"{text}{place}")


def interpret(returned: Any, threshold: float) -> Verdict:
    """Return the verdict that a score, or a pair of score and flag, means.

    Raises:
        MalformedError: it is neither.
    """
    score, flag = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, None)
    number = scalar(score)
    if math.isnan(number):
        raise MalformedError("returned NaN: a score is a number >= 0")
    if number < 0:
        raise MalformedError(f"returned {number:g}: a score is a number >= 0")
    return Verdict(number, number > threshold if flag is None else bool(scalar(flag)))


def judged_pair(score: Any, flag: Any, threshold: float) -> Verdict:
    """Return the verdict on one case of a batch."""
    try:
        return interpret(score if flag is None else (score, flag), threshold)
    except MalformedError as error:
        return failure(error)


def scalar(value: Any) -> float:
    """Return a Python, numpy or torch scalar as a float."""
    if isinstance(value, Tensor | np.ndarray | np.generic) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, bool | int | float):
        shape = f" of shape {list(value.shape)}" if isinstance(value, Tensor | np.ndarray) else ""
        raise MalformedError(f"returned {type(value).__name__}{shape}: a score is one number >= 0")
    return float(value)


def items(values: Any, count: int) -> list[Any]:
    """Return C scores or flags as Python values."""
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.shape != (count,):
        raise MalformedError(f"returned shape {list(array.shape)}: a batched detector returns [{count}] here")
    return list(array.tolist())
