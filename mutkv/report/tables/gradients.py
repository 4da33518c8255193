"""Autograd against central differences, by structure and by tensor."""

import pandas as pd

from mutkv.grid.results import Results
from mutkv.report.tables.common import measured, no_tables


def gradients_tables(results: Results) -> dict[str, pd.DataFrame]:
    """Return ``gradients``, one row per structure, and ``tensors``, one row per structure and tensor."""
    found = measured(results)
    if found.empty:
        return no_tables("gradients", "tensors")
    keys = ["mutant", "positions", "depth"]
    worst = found.groupby([*keys, "part", "quantity"], sort=False)["value"].max().unstack("quantity")
    tensors = worst.rename_axis(columns=None).reset_index().rename(columns={"part": "tensor"})
    groups = tensors.groupby(keys, sort=False)
    figures = {
        "runs": found.groupby(keys)["case_id"].nunique(),
        "tensors": groups.size(),
        "largest gradient": groups["gradient size"].max(),
        "largest error": groups["gradient error"].max(),
    }
    return {"gradients": pd.DataFrame(figures).reset_index(), "tensors": tensors}
