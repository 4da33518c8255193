"""The table of a sweep over prefix lengths: one row per length, two columns per mutant."""

import pandas as pd

from mutkv.grid.results import Results
from mutkv.report.tables.common import in_plan_order, observations_of


def profile_table(results: Results) -> pd.DataFrame:
    """One row per sharpness and prefix length; per mutant, seeds whose argmax flipped and the largest deviation."""
    keys = ["sharpness", "prompt_length"]
    cases = results.cases
    worst = observations_of(results, "mutant", *keys).groupby([*keys, "mutant"])["max_abs"].max().unstack("mutant")
    ok = cases[cases["outcome"] == "ok"].astype({"output_changed": bool})
    flips = ok.groupby([*keys, "mutant"])["output_changed"].sum().astype("Int64").unstack("mutant")
    seeds = ok.groupby(keys)["seed"].nunique()
    table = pd.DataFrame({"seeds": seeds})
    for mutant in in_plan_order(results, worst.T):
        if mutant != "clean":
            table[f"{mutant} flips"] = flips[mutant]
        table[f"{mutant} max|Δ|"] = worst[mutant]
    return table.reset_index()
