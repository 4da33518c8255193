"""The area under the ROC curve in the form that the bootstrap needs: pair counts per mutant instead of a curve.

The AUC is the share of (positive, negative) pairs that the score orders rightly, ties counted half (Mann and Whitney,
1947). Counted once per pair of mutants, the AUC of any draw of mutants is a ratio of two forms in how often each was
drawn; no draw is ever ranked again.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mutkv.scoring.interval import FloatArray

IntArray = NDArray[np.intp]

MAX_FPR = 0.01
"""The partial AUC looks at false-positive rates up to here: a check that cries wolf more often is switched off."""


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Rightly ordered pairs of each mutant's positives, against fixed negatives and against each mutant's harmless.

    ``positives``, ``harmless`` and ``fixed_wins`` are ``[mutants]``; ``wins`` is ``[mutants, mutants]``, a row per
    mutant of the harmless cases and a column per mutant of the positives.
    """

    positives: FloatArray
    harmless: FloatArray
    fixed: int
    fixed_wins: FloatArray
    wins: FloatArray

    def auc(self, counts: FloatArray) -> FloatArray:
        """Return the AUC ``[draws]`` with each mutant taken ``counts[draw, mutant]`` times; NaN without negatives."""
        won = counts @ self.fixed_wins + ((counts @ self.wins) * counts).sum(axis=-1)
        pairs = (counts @ self.positives) * (self.fixed + counts @ self.harmless)
        with np.errstate(invalid="ignore"):
            return np.asarray(won / pairs)


def count_pairs(
    positive: FloatArray, positive_mutant: IntArray, fixed: FloatArray, harmless: FloatArray, harmless_mutant: IntArray
) -> PairCounts:
    """Count pairs from scores and, for positives and harmless cases, the number of the mutant each belongs to.

    Mutants are numbered from 0 and each has a positive.
    """
    positives = np.bincount(positive_mutant).astype(float)
    mutants = len(positives)

    def wins(negative: FloatArray) -> FloatArray:
        return np.bincount(positive_mutant, _below(positive, negative), mutants).astype(float)

    by_mutant = [wins(harmless[harmless_mutant == mutant]) for mutant in range(mutants)]
    return PairCounts(
        positives=positives,
        harmless=np.bincount(harmless_mutant, minlength=mutants).astype(float),
        fixed=len(fixed),
        fixed_wins=wins(fixed),
        wins=np.reshape(by_mutant, (mutants, mutants)),
    )


def partial_auc(positive: FloatArray, negative: FloatArray) -> float | None:
    """Return the partial AUC up to ``MAX_FPR``, standardised so that chance is 0.5; None with one class only.

    McClish 1989, as scikit-learn's ``roc_auc_score(max_fpr=…)`` has it; importing that takes longer than all scoring.
    """
    if not (len(positive) and len(negative)):
        return None
    thresholds = np.unique(np.concatenate([positive, negative]))[::-1]
    true = np.r_[0.0, [np.mean(positive >= threshold) for threshold in thresholds]]
    false = np.r_[0.0, [np.mean(negative >= threshold) for threshold in thresholds]]
    inside = int(np.searchsorted(false, MAX_FPR, "right"))  # the curve's last point is (1, 1), beyond the limit
    share = (MAX_FPR - false[inside - 1]) / (false[inside] - false[inside - 1])
    end = true[inside - 1] + share * (true[inside] - true[inside - 1])
    area = np.trapezoid(np.r_[true[:inside], end], np.r_[false[:inside], MAX_FPR])
    chance = MAX_FPR**2 / 2
    return float((1 + (area - chance) / (MAX_FPR - chance)) / 2)


def _below(scores: FloatArray, negative: FloatArray) -> FloatArray:
    """Return for each score the number of negatives below it, equal ones counted half."""
    ordered = np.sort(negative)
    return (np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")) / 2
