"""One detector's verdicts while they come in, then as columns, with the one line of warning it may have earned."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from mutkv.configuration import Configuration
from mutkv.detectors.detector import Detector
from mutkv.detectors.verdict import BoolArray, FloatArray, Verdict
from mutkv.errors import one_line

IntArray = npt.NDArray[np.int64]


class Tally:
    """The verdicts of one detector on the rows of a frame of cases."""

    def __init__(self, detector: Detector, cases: pd.DataFrame) -> None:
        self.detector = detector
        self._cases = cases
        self._score, self._cost = np.zeros(len(cases)), np.full(len(cases), np.nan)
        self._flag, self._crashed, self._missing = np.zeros((3, len(cases)), np.bool_)
        self._reasons: dict[str, str] = {}  # of each kind of failure the first
        self._cost_error: list[str] = []

    def add(self, index: IntArray, scores: FloatArray, flags: BoolArray, group: Configuration) -> None:
        """Note scores and flags of the cases at these places."""
        self._score[index], self._flag[index], self._cost[index] = scores, flags, self._stated(group)

    def add_each(self, index: IntArray, verdicts: Sequence[Verdict], group: Configuration) -> None:
        """Note verdicts on the cases at these places; a measured cost goes before the stated one."""
        scores, costs = (np.array([getattr(v, name) for v in verdicts], np.float64) for name in ("score", "cost"))
        self.add(index, scores, np.array([verdict.flag for verdict in verdicts], np.bool_), group)
        self._cost[index] = np.where(np.isnan(costs), self._cost[index], costs)
        for place, verdict in zip(index.tolist(), verdicts, strict=True):
            if verdict.failure is not None:
                self._reasons.setdefault("crashed" if verdict.applicable else "is not applicable", verdict.failure)
                (self._crashed if verdict.applicable else self._missing)[place] = True

    def frame(self) -> pd.DataFrame:
        """Return the columns of the cases, and detector, threshold, score, flag, crashed and cost_tokens."""
        frame = self._cases.assign(
            detector=self.detector.name,
            threshold=float(self.detector.threshold),
            score=self._score,
            flag=self._flag,
            crashed=self._crashed,
            cost_tokens=self._cost,
        )
        return frame[~self._missing] if self._missing.any() else frame

    def warnings(self) -> list[str]:
        """Return a line for crashes, one for cases without a verdict, one for a stated cost that raises."""
        counts = {"crashed": self._crashed.sum(), "is not applicable": self._missing.sum()}
        lines = [
            f"detector '{self.detector.name}' {what} on {counts[what]} of {len(self._cases)} cases, first: {reason}"
            for what, reason in self._reasons.items()
        ]
        return lines + self._cost_error

    def _stated(self, group: Configuration) -> float:
        """Return the cost that the detector states, NaN where it states none."""
        if self.detector.cost is None:
            return math.nan
        try:
            return finite(float(self.detector.cost(group)))
        except Exception as error:
            text = one_line(error)
            self._cost_error = [f"the cost of detector '{self.detector.name}' is unknown: its function raised {text}"]
            return math.nan


def finite(cost: float) -> float:
    """Return a number of tokens, or raise ValueError for what is none."""
    if not 0 <= cost < math.inf:
        raise ValueError(f"{cost} is no number of tokens")
    return cost
