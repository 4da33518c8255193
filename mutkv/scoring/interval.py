"""Estimates with their uncertainty, so that no figure leaves this package without an interval or an explicit n/a.

Cases of one mutant resemble each other, so figures over mutants are resampled by mutant, not by case: an interval over
cases alone would be too narrow.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Statistic = Callable[[FloatArray], FloatArray]
"""How often each mutant was drawn, ``[draws, mutants]``, to one figure per draw, ``[draws]``; NaN where undefined."""

LEVEL = 0.95
DRAWS = 2_000
PERCENTILES = (2.5, 97.5)


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure and its 95% interval; None where undefined. A figure of a single mutant has no interval."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


def proportion(hits: int, total: int, method: Literal["wilson", "exact"]) -> Interval:
    """Return ``hits / total`` with its Wilson (1927) or Clopper-Pearson (1934, "exact") interval.

    The same bounds as scipy.stats' ``binomtest``, which takes longer to import than all scoring.
    """
    from scipy.special import betaincinv, ndtri

    if total == 0:
        return Interval()
    tail, share = (1 - LEVEL) / 2, hits / total
    if method == "wilson":
        z = float(ndtri(1 - tail))
        centre = share + z * z / (2 * total)
        spread = z * math.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
        low, high = ((centre + side * spread) / (1 + z * z / total) for side in (-1, 1))
    else:
        low = betaincinv(hits, total - hits + 1, tail) if hits else 0.0
        high = betaincinv(hits + 1, total - hits, 1 - tail) if hits < total else 1.0
    return Interval(share, float(low) if hits else 0.0, float(high) if hits < total else 1.0)


def bootstrap(statistic: Statistic, mutants: int, seed: int) -> Interval:
    """Return a statistic of mutants with its percentile interval over draws of mutants with replacement.

    A draw in which the statistic is undefined (no negative was drawn) says nothing and is left out. One seed gives the
    same draws to every statistic of as many mutants, which is what makes differences of two statistics paired.
    """
    value = statistic(np.ones((1, mutants)))[0] if mutants else np.nan
    if np.isnan(value):
        return Interval()
    if mutants == 1:
        return Interval(float(value))  # one mutant says nothing of others: an interval of no width would claim it does
    low, high = np.nanpercentile(statistic(_draws(mutants, seed)), PERCENTILES)
    return Interval(float(value), float(low), float(high))


@lru_cache(maxsize=8)
def _draws(mutants: int, seed: int) -> FloatArray:
    """Return how often each draw holds each mutant, ``[DRAWS, mutants]``, read-only; every row sums to ``mutants``."""
    drawn = np.random.default_rng(seed).integers(0, mutants, (DRAWS, mutants))
    counts = np.zeros((DRAWS, mutants))
    np.add.at(counts, (np.arange(DRAWS)[:, None], drawn), 1)
    counts.setflags(write=False)
    return counts
