"""How each fault shows at each prefix length, and the fewest probes that see them all.

A probe is one comparison of the two paths: a model (weights, sharpness), a prefix length and a step. What a probe
sees depends on the draw of the weights, so that every figure is over seeds.
"""

from collections.abc import Hashable
from typing import Any

import pandas as pd

from mutkv.grid.plan import BENIGN
from mutkv.grid.results import Results
from mutkv.report.tables.common import apart_from, in_plan_order, observations_of
from mutkv.scoring.cover import smallest_cover

MODEL = ["weights", "sharpness"]
PROBE = [*MODEL, "prompt_length", "step"]
COUNTS = ["prompt_length", "step", "catches"]
TOLERANCE = 1e-2
"""The chapter's tolerance on |Δ|, beside its assertion on the argmax."""
RULES = {"argmax differs": "flip", f"|Δ| > {TOLERANCE:g}": "over"}


def length_profile_tables(results: Results) -> dict[str, pd.DataFrame]:
    """Return ``flips`` and ``deviation`` by length, ``first-flip`` by mutant, ``probes``, and ``profile``, the data."""
    probed = probe_results(results)
    runs = probed.groupby([*MODEL, "prompt_length", "mutant", "draw"], sort=False)[["flip", "max_abs"]].max()
    mutants = in_plan_order(results, runs.groupby("mutant").first())
    return {
        "flips": flips_table(runs, mutants),
        "deviation": deviation_table(runs, mutants),
        "first-flip": first_flip_table(runs, mutants),
        "probes": probes_table(probed),
        "profile": profile_data(probed, mutants),
    }


def probe_results(results: Results) -> pd.DataFrame:
    """Return what each probe sees of each mutant on each draw: all that is not model or length, seed above all."""
    observations = observations_of(results, "mutant", *MODEL, "prompt_length")
    draws = dict(zip(results.cases["case_id"], apart_from(results.cases, *MODEL, "prompt_length"), strict=True))
    observations = observations[~observations["mutant"].isin(BENIGN)].assign(
        draw=lambda rows: rows["case_id"].map(draws),
        flip=lambda rows: rows["argmax_cached"] != rows["argmax_full"],
        over=lambda rows: rows["max_abs"] > TOLERANCE,
    )
    rows_of_a_batch = observations.groupby([*PROBE, "mutant", "draw"], sort=False)
    return rows_of_a_batch[["flip", "over", "max_abs"]].max().reset_index()


def flips_table(runs: pd.DataFrame, mutants: list[str]) -> pd.DataFrame:
    """One row per model and length: seeds whose argmax flips at some step, and the mutants that no seed shows."""
    keys = [*MODEL, "prompt_length"]
    by_mutant = runs.groupby([*keys, "mutant"])["flip"]
    counts = by_mutant.size().unstack("mutant")[mutants]
    seeds = counts.max(axis=1)
    # Where a mutant failed on some seed, its count of flips is not one of all seeds.
    flips = by_mutant.sum().astype("Int64").unstack("mutant")[mutants].where(counts.eq(seeds, axis=0))
    never = flips.eq(0).fillna(False).astype(bool)
    unseen = never.apply(lambda row: "all" if row.all() else ", ".join(row.index[row]) or "none", axis=1)
    flips.insert(0, "seeds", seeds)
    return flips.assign(unseen=unseen).rename_axis(columns=None).reset_index()


def deviation_table(runs: pd.DataFrame, mutants: list[str]) -> pd.DataFrame:
    """One row per model and length: the median over seeds of the largest deviation."""
    deviation = runs.groupby([*MODEL, "prompt_length", "mutant"])["max_abs"].median()
    return deviation.unstack("mutant")[mutants].rename_axis(columns=None).reset_index()


def first_flip_table(runs: pd.DataFrame, mutants: list[str]) -> pd.DataFrame:
    """One row per model and mutant: the lengths at which it flips the argmax, and where |Δ| (median) is largest."""
    by_length = runs.groupby([*MODEL, "mutant", "prompt_length"]).agg(
        share=("flip", "mean"), deviation=("max_abs", "median")
    )
    rows = []
    for key, lengths in by_length.groupby([*MODEL, "mutant"]):
        share, deviation = lengths["share"].droplevel([0, 1, 2]), lengths["deviation"].droplevel([0, 1, 2])
        rows.append(
            dict(zip([*MODEL, "mutant"], key, strict=True))
            | {"some seed first at": first_index(share > 0), "every seed first at": first_index(share == 1)}
            | {"no seed at": ", ".join(map(str, share.index[share == 0])) or "none"}
            | {"|Δ| at shortest": deviation.iloc[0], "largest |Δ|": deviation.max(), "at length": deviation.idxmax()}
            | {"|Δ| at longest": deviation.iloc[-1]}
        )
    if not rows:
        return pd.DataFrame(columns=[*MODEL, "mutant"])
    table = pd.DataFrame(rows).astype({"some seed first at": "Int64", "every seed first at": "Int64"})
    return table.sort_values([*MODEL, "mutant"], key=lambda column: ranked(column, mutants), kind="stable")


def probes_table(probed: pd.DataFrame) -> pd.DataFrame:
    """One row per probe of the smallest set that catches every mutant on every seed, by rule and kind of weights."""
    rows = []
    for weights, part in probed.groupby("weights", sort=False):
        targets = part["mutant"] + " " + part["draw"]
        for rule, column in RULES.items():
            caught = part.assign(target=targets).pivot(index=PROBE, columns="target", values=column).eq(True)
            probes = caught.index.to_frame(index=False)
            chosen = smallest_cover(caught, (probes["prompt_length"] + probes["step"]).to_numpy(float))
            missed = int((~caught.any()).sum())
            about: dict[Hashable, Any] = {
                "rule": rule,
                "targets": caught.shape[1],
                "caught by none": missed,
                "weights": weights,
            }
            rows += [about | probes.loc[row].to_dict() | {"catches": int(caught.iloc[row].sum())} for row in chosen]
            rows += [] if chosen else [about]
    return pd.DataFrame(rows).astype({name: "Int64" for name in COUNTS if any(name in row for row in rows)})


def profile_data(probed: pd.DataFrame, mutants: list[str]) -> pd.DataFrame:
    """One row per probe and mutant: seeds, flips, and the deviation's least, median and largest value."""
    groups = probed.groupby([*PROBE, "mutant"], sort=False)
    figures = {"seeds": groups.size(), "flips": groups["flip"].sum()}
    figures |= {f"{name} |Δ|": groups["max_abs"].agg(name) for name in ("min", "median", "max")}
    keys = [*PROBE, "mutant"]
    table = pd.DataFrame(figures).reset_index()
    return table.sort_values(keys, key=lambda column: ranked(column, mutants), kind="stable")


def first_index(flags: "pd.Series[bool]") -> int | None:
    """Return the first label whose flag is true."""
    return int(flags.index[flags][0]) if flags.any() else None


def ranked(column: pd.Series, mutants: list[str]) -> pd.Series:
    """Return a column as it is sorted: mutants in the plan's order."""
    return column.map(mutants.index) if column.name == "mutant" else column
