"""From what a detector returns to a verdict, and from what it raises to ``crashed``: nothing it does ends a scoring."""

import math
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from mutkv.detectors.detector import Detector
from mutkv.errors import IncompleteError, Unsupported, one_line
from mutkv.grid.limits import time_limit

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

LIVE_SECONDS = 600.0
"""A live checker on a mutant may loop for ever; one that takes longer on a case has crashed there."""
LONGEST_REASON = 160


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a detector says of one case."""

    score: float = 0.0
    flag: bool = False
    failure: str | None = None
    """Why there is no score, in one line; such a verdict is not flagged and has score 0."""
    applicable: bool = True
    """False where the engine cannot give what the detector asks for: a failure, but no crash and no verdict."""
    cost: float = math.nan
    """Tokens, where they were counted."""


class MalformedError(Exception):
    """A detector returned what is no score."""


def judge_one(detector: Detector, case: Any) -> Verdict:
    """Call a detector on one case; one that is batched, on a batch of this case alone."""
    try:
        returned = detector.function(case)
        if detector.batched:
            scores, flags = columns(returned, 1, detector.threshold)
            return Verdict(float(scores[0]), bool(flags[0]))
        return interpret(returned, detector.threshold)
    except (KeyboardInterrupt, IncompleteError):  # the second is about the dataset, not about the detector
        raise
    except BaseException as error:  # also SystemExit and pytest.fail: a user's code may use either to say no
        return failed(error)


def judge_batch(detector: Detector, cases: Any, count: int) -> tuple[FloatArray, BoolArray] | None:
    """Call a detector on C cases; return scores and flags ``[C]``, or None where any of them is missing."""
    try:
        return columns(detector.function(cases), count, detector.threshold)
    except (KeyboardInterrupt, IncompleteError):  # the second is about the dataset, not about the detector
        raise
    except BaseException:
        return None


def judge_live(detector: Detector, engine: Any, tokens: Callable[[], int]) -> Verdict:
    """Call a live checker on an engine; ``tokens`` says how many it has fed so far."""
    try:
        with time_limit(LIVE_SECONDS):
            returned = detector.function(engine)
        verdict = interpret(0.0 if returned is None else returned, detector.threshold)
    except AssertionError:
        verdict = Verdict(1.0, True)
    except (KeyboardInterrupt, IncompleteError):  # the second is about the dataset, not about the detector
        raise
    except BaseException as error:
        verdict = failed(error)
    return replace(verdict, cost=float(tokens()))


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return one verdict for the parts of a case: a failure of any, else the highest score and any flag."""
    for verdict in verdicts:
        if verdict.failure is not None:
            return verdict
    return Verdict(max(verdict.score for verdict in verdicts), any(verdict.flag for verdict in verdicts))


def failed(error: BaseException) -> Verdict:
    """Return the verdict for an exception: not applicable for what an engine cannot do, else crashed."""
    if isinstance(error, Unsupported | MalformedError):
        return Verdict(failure=str(error), applicable=not isinstance(error, Unsupported))
    text = one_line(error)[:LONGEST_REASON]
    # frame 0 is the call in this module, frame 1 the detector's own line
    frames = traceback.extract_tb(error.__traceback__)[1:2]
    place = "".join(f" ({Path(frame.filename).name} line {frame.lineno})" for frame in frames)
    return Verdict(failure=f"{text}{place}")


def interpret(returned: Any, threshold: float) -> Verdict:
    """Return the verdict that a score, or a pair of score and flag, means.

    Raises:
        MalformedError: it is neither.
    """
    score, flag = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, None)
    if isinstance(score, bool | np.bool_):
        raise MalformedError("returned True or False: return a score, or a pair of score and flag")
    number = scalar(score)
    if not number >= 0:
        raise MalformedError(f"returned {number:g}: a score is a number >= 0")
    return Verdict(number, number > threshold if flag is None else truth(scalar(flag)))


def truth(flag: float) -> bool:
    """Return a flag given as a number."""
    if flag not in (0, 1):
        raise MalformedError(f"returned the flag {flag:g}: a flag is true or false")
    return bool(flag)


def scalar(value: Any) -> float:
    """Return a Python, numpy or torch scalar as a float."""
    if isinstance(value, Tensor | np.ndarray | np.generic) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, bool | int | float):
        shape = f" of shape {list(value.shape)}" if isinstance(value, Tensor | np.ndarray) else ""
        raise MalformedError(f"returned {type(value).__name__}{shape}: a score is one number >= 0")
    return float(value)


def columns(returned: Any, count: int, threshold: float) -> tuple[FloatArray, BoolArray]:
    """Return the scores and flags of C cases.

    Raises:
        MalformedError: they are not ``[C]``, or any score is not a number >= 0.
    """
    scores, flags = returned if isinstance(returned, tuple) else (returned, None)
    numbers = np.asarray(array_of(scores, count), np.float64)
    wrong = numbers[~(numbers >= 0)]
    if len(wrong):
        raise MalformedError(f"returned {wrong[0]:g}: a score is a number >= 0")
    if flags is None:
        return numbers, numbers > threshold
    return numbers, np.array([truth(float(flag)) for flag in array_of(flags, count)], np.bool_)


def is_real(values: Any) -> bool:
    """Whether this is a tensor of numbers that a float64 holds."""
    return isinstance(values, Tensor) and not values.is_complex()


def array_of(values: Any, count: int) -> npt.NDArray[Any]:
    """Return C values as an array."""
    array = values.detach().cpu().double().numpy() if is_real(values) else np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise MalformedError(f"returned values of type {array.dtype}: a score is one number >= 0")
    if array.shape != (count,):
        raise MalformedError(f"returned shape {list(array.shape)}: a batched detector returns [{count}] here")
    return array
