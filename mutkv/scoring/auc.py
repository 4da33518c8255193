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
    """Return scikit-learn's standardised partial AUC up to ``MAX_FPR``; None with one class only."""
    from sklearn.metrics import roc_auc_score  # 1.7 s

    if not (len(positive) and len(negative)):
        return None
    # Dense ranks order as the scores do and, unlike them, are finite, which scikit-learn insists on.
    ranks = np.unique(np.concatenate([positive, negative]), return_inverse=True)[1]
    truth = np.arange(len(ranks)) < len(positive)
    return float(roc_auc_score(truth, ranks, max_fpr=MAX_FPR))


def _below(scores: FloatArray, negative: FloatArray) -> FloatArray:
    """Return for each score the number of negatives below it, equal ones counted half."""
    ordered = np.sort(negative)
    return (np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")) / 2
