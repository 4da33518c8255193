"""Which cases count as what: the one place that turns labels and kinds into positives, harmless and benign cases.

A control whose argmax flips is noise and stays benign; a fault shared by both paths, or of the full path alone, is not
what a cached-against-full check is asked about, so it is neither.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from mutkv.errors import unknown_name
from mutkv.scoring.auc import IntArray, PairCounts, count_pairs
from mutkv.scoring.interval import FloatArray

LABELS = {"output-changed": "output_changed", "observable": "observable"}
"""Each label and its column in ``cases``."""

DEFAULT_LABEL = "output-changed"
HEADLINE_PATHS = ("cached",)
PATHS = ("cached", "both", "full")

POSITIVE = "positive"
HARMLESS = "harmless"
BENIGN = "benign"
FAILED = "failed"
OUTSIDE = "outside"


def assign_roles(verdicts: pd.DataFrame, label: str, paths: Collection[str] = HEADLINE_PATHS) -> pd.DataFrame:
    """Return the frame with a column ``role``.

    ``positive`` and ``harmless``: faulty on one of ``paths``, with and without the label; ``failed``: the same whose
    outcome is not ok; ``benign``: not faulty, whatever its label says; ``outside``: the rest.

    Raises:
        UsageError: ``label`` is not one of ``LABELS``.
    """
    if label not in LABELS:
        raise unknown_name("label", label, LABELS)
    labelled = verdicts[LABELS[label]].astype("boolean").fillna(False).to_numpy(bool)
    ok = (verdicts["outcome"] == "ok").to_numpy(bool)
    benign = (verdicts["kind"] != "faulty").to_numpy(bool)
    faulty = ~benign & verdicts["path"].isin(paths).to_numpy(bool)
    conditions = [benign & ok, faulty & ~ok, faulty & labelled, faulty]
    return verdicts.assign(role=np.select(conditions, [BENIGN, FAILED, POSITIVE, HARMLESS], OUTSIDE))


@dataclass(frozen=True)
class Sample:
    """One detector's verdicts by role; its methods are statistics of how often each scorable mutant was drawn."""

    positive: pd.DataFrame
    harmless: pd.DataFrame
    benign: pd.DataFrame

    @classmethod
    def of(cls, verdicts: pd.DataFrame) -> "Sample":
        """Take the verdicts of one detector, with roles."""
        return cls(*(verdicts[verdicts["role"] == role] for role in (POSITIVE, HARMLESS, BENIGN)))

    @cached_property
    def mutants(self) -> "pd.Index[str]":
        """The scorable mutants, which have a positive case; sorted, so that row order cannot change a draw."""
        index: pd.Index[str] = pd.Index(sorted(set(self.positive["mutant"])))
        return index

    def recall(self, counts: FloatArray) -> FloatArray:
        """Return the mean of the drawn mutants' recalls, ``[draws]``."""
        per_mutant = self.positive.groupby("mutant", observed=True)["flag"].mean().reindex(self.mutants)
        return np.asarray(counts @ per_mutant.to_numpy(float) / counts.sum(axis=-1))

    def auc(self, counts: FloatArray) -> FloatArray:
        """Return the AUC of the drawn mutants' positives against the benign cases, ``[draws]``."""
        return self._against_benign.auc(counts)

    def auc_source(self, counts: FloatArray) -> FloatArray:
        """Return the same against the benign and the harmless cases; a drawn mutant brings its own harmless cases.

        Harmless cases of a mutant that is never drawn, for want of a positive, are fixed as the benign ones are.
        """
        return self._against_all.auc(counts)

    @cached_property
    def _against_benign(self) -> PairCounts:
        return self._pairs(_scores(self.benign), self.harmless.iloc[:0])

    @cached_property
    def _against_all(self) -> PairCounts:
        drawn = self.harmless["mutant"].isin(self.mutants)
        fixed = np.concatenate([_scores(self.benign), _scores(self.harmless[~drawn])])
        return self._pairs(fixed, self.harmless[drawn])

    def _pairs(self, fixed: FloatArray, harmless: pd.DataFrame) -> PairCounts:
        numbers = self._numbers(self.positive), self._numbers(harmless)
        return count_pairs(_scores(self.positive), numbers[0], fixed, _scores(harmless), numbers[1])

    def _numbers(self, frame: pd.DataFrame) -> IntArray:
        return np.asarray(self.mutants.get_indexer(pd.Index(frame["mutant"])))


def _scores(frame: pd.DataFrame) -> FloatArray:
    return frame["score"].to_numpy(float)
