"""Training on a suffix over a cached prefix: what constants in place of keys and values cost, over seeds."""

import pandas as pd

from mutkv.grid.results import Results
from mutkv.report.tables.common import measured, no_tables

WAYS = ("through", "constant", "frozen")
KEYS = ["mutant", "prompt_length", "steps"]
SPREAD = ("mean", "min", "max")


def training_prefix_tables(results: Results) -> dict[str, pd.DataFrame]:
    """Return ``training``, one row per prefix, ``losses`` by way, and as data ``curves`` and ``cosines`` by tensor."""
    found = measured(results)
    if found.empty:
        return no_tables("training", "losses", "curves", "cosines")
    curves = found[found["quantity"].str.startswith("held-out loss, ")]
    curves = curves.assign(
        way=curves["quantity"].str.removeprefix("held-out loss, "),
        **{"training step": curves["part"].str.removeprefix("step ").astype(int)},
    )
    cosines = found[(found["quantity"] == "gradient cosine") & (found["part"] != "all")]
    return {
        "training": training_table(found[found["part"] == "all"]),
        "losses": losses_table(found[found["part"] == "all"]),
        "curves": spread(curves, [*KEYS, "way", "training step"]),
        "cosines": spread(cosines.rename(columns={"part": "tensor"}), [*KEYS, "tensor"]),
    }


def training_table(found: pd.DataFrame) -> pd.DataFrame:
    """One row per prefix: the cosine of the two gradients over seeds, and the mean held-out loss of each way."""
    cosine = spread(found[found["quantity"] == "gradient cosine"], KEYS)
    table = cosine.rename(columns={name: f"cosine {name}" for name in SPREAD}).set_index(KEYS)
    means = found.groupby([*KEYS, "quantity"])["value"].mean().unstack("quantity")
    for way in WAYS:
        table[f"loss {way}"] = means[f"suffix loss, {way}"]
    table["loss untrained"] = means["suffix loss, untrained"]
    return table.reset_index()


def losses_table(found: pd.DataFrame) -> pd.DataFrame:
    """One row per prefix and way: the held-out loss after training, over seeds."""
    losses = found[found["quantity"].str.startswith("suffix loss, ")]
    named = losses.assign(way=losses["quantity"].str.removeprefix("suffix loss, "))
    return spread(named, [*KEYS, "way"])


def spread(found: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return seeds, mean, least and largest value of each group, groups in order of appearance."""
    groups = found.groupby(keys, sort=False)
    table = groups["value"].agg(list(SPREAD))
    table.insert(0, "seeds", groups["seed"].nunique())
    return table.reset_index()
