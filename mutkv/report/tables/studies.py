"""Tables of the studies: what was measured per layer, per tensor or per prefix, over seeds."""

import pandas as pd

from mutkv.grid.results import Results
from mutkv.report.tables.common import in_plan_order

STREAMS = ("residual", "keys", "values")


def causality_tables(results: Results) -> dict[str, pd.DataFrame]:
    """Return ``layers`` (what appending a token and what the cache changes) and ``infection`` (by mutant)."""
    worst = results.measurements.groupby(["mutant", "part", "quantity"])["value"].max().unstack("quantity")
    order = in_plan_order(results, worst.groupby("mutant").first())
    worst = worst.reindex(order, level="mutant")
    streams = [f"{what}: {stream}" for what in ("append", "cache") for stream in STREAMS]
    layers = worst[streams].rename_axis(columns=None).reset_index().rename(columns={"part": "layer"})
    layers["layer"] = layers["layer"].str.removeprefix("layer ")
    infected = worst["infected"].unstack("part").reindex(order)
    first = infected.gt(0).apply(lambda row: row.idxmax().removeprefix("layer ") if row.any() else "none", axis=1)
    infected.insert(0, "first infected layer", first)
    return {"layers": layers, "infection": infected.rename_axis(columns=None).reset_index()}


def gradients_tables(results: Results) -> dict[str, pd.DataFrame]:
    """Return ``gradients``, one row per structure, and ``tensors``, one row per structure and tensor."""
    keys = ["positions", "depth"]
    worst = results.measurements.groupby([*keys, "part", "quantity"], sort=False)["value"].max().unstack("quantity")
    tensors = worst.rename_axis(columns=None).reset_index().rename(columns={"part": "tensor"})
    groups = tensors.groupby(keys, sort=False)
    figures = {
        "seeds": results.cases.groupby(keys)["seed"].nunique(),
        "tensors": groups.size(),
        "largest gradient": groups["gradient size"].max(),
        "largest error": groups["gradient error"].max(),
    }
    return {"gradients": pd.DataFrame(figures).reset_index(), "tensors": tensors}
