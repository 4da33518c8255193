"""The smallest set of checks that catches everything: which few probes are worth running in place of all.

A minimum set cover (Karp 1972), solved exactly as an integer program by HiGHS through ``scipy.optimize.milp``.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def smallest_cover(catches: pd.DataFrame, cost: NDArray[np.float64]) -> list[int]:
    """Return the rows of the smallest set that catches every column that some row catches, cheapest among equals.

    ``catches`` is boolean, one row per probe and one column per target; ``cost`` is what a probe costs, ``[rows]``.
    Columns that no row catches are left to the caller: ``catches.columns[~catches.any()]``.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    matrix = catches.to_numpy(float)[:, catches.any().to_numpy()]
    if not matrix.size:
        return []
    ones, everything = np.ones(len(matrix)), LinearConstraint(matrix.T, lb=1)
    exactly = {"integrality": ones, "bounds": Bounds(0, 1), "options": {"mip_rel_gap": 0}}
    size = round(milp(ones, constraints=everything, **exactly).fun)
    cheapest = milp(cost, constraints=[everything, LinearConstraint(ones, ub=size)], **exactly)
    return [int(row) for row in np.flatnonzero(cheapest.x > 0.5)]
