"""What an appended token and a cache change, layer by layer, and the layer in which each mutant begins."""

import pandas as pd

from mutkv.grid.results import Results
from mutkv.report.tables.common import in_plan_order, measured, no_tables

STREAMS = ("residual", "keys", "values")


def causality_tables(results: Results) -> dict[str, pd.DataFrame]:
    """Return ``layers`` (what appending a token and what the cache changes) and ``infection`` (by mutant)."""
    found = measured(results)
    if found.empty:
        return no_tables("layers", "infection")
    found = found.assign(layer=found["part"].str.removeprefix("layer ").astype(int))
    worst = found.groupby(["mutant", "layer", "quantity"])["value"].max().unstack("quantity")
    order = in_plan_order(results, worst.groupby("mutant").first())
    worst = worst.reindex(order, level="mutant")
    streams = [f"{what}: {stream}" for what in ("append", "cache") for stream in STREAMS]
    layers = worst[streams].rename_axis(columns=None).reset_index()
    infected = worst["infection"].unstack("layer").reindex(order)
    first = infected.gt(0).apply(lambda row: str(row.idxmax()) if row.any() else "none", axis=1)
    infected.columns = pd.Index([f"layer {layer}" for layer in infected.columns])
    infected.insert(0, "first infected layer", first)
    return {"layers": layers, "infection": infected.rename_axis(columns=None).reset_index()}
