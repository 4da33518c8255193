"""One detector's verdicts while they come in, then as columns, with the one line of warning it may have earned."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from mutkv.configuration import Configuration
from mutkv.detectors.detector import Detector
from mutkv.detectors.verdict import Verdict


class Tally:
    """The verdicts of one detector on the rows of a frame of cases."""

    def __init__(self, detector: Detector, cases: pd.DataFrame) -> None:
        self.detector = detector
        self.verdicts = [Verdict(applicable=False)] * len(cases)
        self.cost: npt.NDArray[np.float64] = np.full(len(cases), np.nan)
        self._cases = cases
        self._cost_error: str | None = None

    def add(self, index: npt.NDArray[np.int64], verdicts: Sequence[Verdict], group: Configuration) -> None:
        """Note the verdicts on the cases at these places; a measured cost goes before the stated one."""
        self.cost[index] = self._stated(group)
        for place, verdict in zip(index.tolist(), verdicts, strict=True):
            self.verdicts[place] = verdict
            if not math.isnan(verdict.cost):
                self.cost[place] = verdict.cost

    def frame(self) -> pd.DataFrame:
        """Return the columns of the cases, and detector, threshold, score, flag, crashed and cost_tokens."""
        kept = np.array([verdict.applicable for verdict in self.verdicts], np.bool_)
        verdicts = [verdict for verdict in self.verdicts if verdict.applicable]
        cases = self._cases if kept.all() else self._cases[kept]
        return cases.assign(
            detector=self.detector.name,
            threshold=float(self.detector.threshold),
            score=np.array([verdict.score for verdict in verdicts], np.float64),
            flag=np.array([verdict.flag for verdict in verdicts], np.bool_),
            crashed=np.array([verdict.crash is not None for verdict in verdicts], np.bool_),
            cost_tokens=self.cost[kept],
        )

    def warnings(self) -> list[str]:
        """Return a line for crashes, one for cases without a verdict, one for a stated cost that raises."""
        found = []
        for applicable, what in ((True, "crashed"), (False, "is not applicable")):
            reasons = [v.crash for v in self.verdicts if v.applicable is applicable and v.crash is not None]
            if reasons:
                count = f"{len(reasons)} of {len(self.verdicts)} cases"
                found.append(f"detector '{self.detector.name}' {what} on {count}, first: {reasons[0]}")
        return found + ([self._cost_error] if self._cost_error else [])

    def _stated(self, group: Configuration) -> float:
        """Return the cost that the detector states, NaN where it states none."""
        if self.detector.cost is None:
            return math.nan
        try:
            return float(self.detector.cost(group))
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            self._cost_error = f"detector '{self.detector.name}' states no cost: {text}"
            return math.nan
