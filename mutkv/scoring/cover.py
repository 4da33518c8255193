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
    # The shares of the cost add up to less than one probe, so that they decide between sets of equal size alone.
    objective = 1 + cost / (cost.sum() + 1)
    everything = LinearConstraint(matrix.T, lb=1)
    solution = milp(objective, constraints=everything, integrality=np.ones(len(matrix)), bounds=Bounds(0, 1))
    return [int(row) for row in np.flatnonzero(solution.x > 0.5)]
