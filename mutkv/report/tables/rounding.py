"""What the order of additions does without any cache, and whether a cache adds to it.

Two full passes in two orders (the control) say how far rounding alone goes in a format; cached runs that prefill in
one order and decode in the other stand beside them. Only the comparison of the two says anything about a cache.
"""

import pandas as pd

from mutkv.grid.plan import BENIGN
from mutkv.grid.results import Results
from mutkv.report.tables.common import observations_of
from mutkv.scoring.interval import proportion

FORMAT = ["weights", "storage", "accumulator"]
FEW = 3
"""Seeds that make up 24 runs with 8 structures: as many as the source had."""
CACHED, TWO_ORDERS, CONTROL = "cached, one order", "cached, two orders", "no cache, two orders"


def rounding_tables(results: Results) -> dict[str, pd.DataFrame]:
    """Return ``agreement`` (positions of two full passes), ``runs`` (flipped ones), and ``flips`` with intervals."""
    observations = compared(results)
    flips = flips_table(observations)
    return {"agreement": agreement_table(observations), "runs": runs_table(flips), "flips": flips}


def compared(results: Results) -> pd.DataFrame:
    """Return the observations, each with what it compares; a control beside unsplit runs would count twice."""
    observations = observations_of(results, "mutant", "seed", "prefill_order", "decode_order", *FORMAT)
    observations = observations[observations["mutant"].isin(BENIGN)].copy()
    split = observations["prefill_order"] != observations["decode_order"]
    control = observations["mutant"] == "control"
    observations["comparison"] = CACHED
    observations.loc[split, "comparison"] = TWO_ORDERS
    observations.loc[control, "comparison"] = CONTROL
    observations["differs"] = observations["argmax_cached"] != observations["argmax_full"]
    return observations[split | ~control]


def agreement_table(observations: pd.DataFrame) -> pd.DataFrame:
    """One row per format: positions at which two full passes agree in every bit, and how far they differ."""
    control = observations[observations["comparison"] == CONTROL]
    by_format = control.groupby(FORMAT, sort=False)
    figures = {
        "runs": by_format["case_id"].nunique(),
        "positions": by_format.size(),
        "equal %": by_format["max_abs"].agg(lambda deviations: (deviations == 0).mean() * 100),
        "max|Δ|": by_format["max_abs"].max(),
        "argmax flips": by_format["differs"].sum(),
    }
    return pd.DataFrame(figures).reset_index()


def flips_table(observations: pd.DataFrame) -> pd.DataFrame:
    """One row per format, comparison and choice of seeds: runs in which some token differs, with a Wilson interval."""
    keys = [*FORMAT, "comparison"]
    runs = observations.groupby([*keys, "case_id", "seed"], sort=False)["differs"].any().reset_index()
    rows = []
    for key, group in runs.groupby(keys, sort=False):
        few = group[group["seed"] < FEW]
        for seeds, part in ((f"first {FEW}", few), ("all", group)):
            if len(part) and (part is few or len(few) < len(group)):
                share = proportion(int(part["differs"].sum()), len(part), "wilson")
                rows.append([*key, seeds, len(part), int(part["differs"].sum()), share.low, share.high])
    return pd.DataFrame(rows, columns=[*keys, "seeds", "runs", "flipped", "low", "high"])


def runs_table(flips: pd.DataFrame) -> pd.DataFrame:
    """One row per choice of seeds and format: in how many runs some token differs, by comparison, as "3 of 24"."""
    keys = ["seeds", *FORMAT]
    counts = flips["flipped"].astype(str) + " of " + flips["runs"].astype(str)
    table = flips.assign(counts=counts).pivot(index=keys, columns="comparison", values="counts")
    order = flips[keys].drop_duplicates().sort_values("seeds", ascending=False, kind="stable")
    table = table.reindex(index=pd.MultiIndex.from_frame(order), columns=[CACHED, TWO_ORDERS, CONTROL])
    return table.rename_axis(columns=None).reset_index()
