"""Is one detector better than another? Differences on the same cases, so that hard mutants count for both."""

from dataclasses import dataclass

import pandas as pd

from mutkv.errors import unknown_name
from mutkv.scoring.interval import Interval, bootstrap
from mutkv.scoring.population import DEFAULT_LABEL, Sample, assign_roles


@dataclass(frozen=True, slots=True)
class Comparison:
    """``first`` minus ``second`` in headline recall and AUC; 0 outside an interval means that they differ."""

    first: str
    second: str
    recall: Interval
    auc: Interval


def compare(
    verdicts: pd.DataFrame, first: str, second: str, *, label: str = DEFAULT_LABEL, seed: int = 0
) -> Comparison:
    """Compare two detectors on the cases that both gave a verdict on, by paired bootstrap over mutants.

    Raises:
        UsageError: a detector has no verdicts, or an unknown label.
    """
    known = set(verdicts["detector"])
    for name in (first, second):
        if name not in known:
            raise unknown_name("detector", name, known)
    verdicts = assign_roles(verdicts, label)
    left, right = (verdicts[verdicts["detector"] == name] for name in (first, second))
    one = Sample.of(left[left["case_id"].isin(right["case_id"])])
    other = Sample.of(right[right["case_id"].isin(left["case_id"])])
    mutants = len(one.mutants)
    return Comparison(
        first=first,
        second=second,
        recall=bootstrap(lambda counts: one.recall(counts) - other.recall(counts), mutants, seed),
        auc=bootstrap(lambda counts: one.auc(counts) - other.auc(counts), mutants, seed),
    )
