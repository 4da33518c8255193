"""What a run found, as one small frame per kind of scenario: the table that ``mutkv grid run`` ends with."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from mutkv.errors import UsageError
from mutkv.grid.results import Results
from mutkv.scoring import case_column

FORMAT = ["storage", "accumulator", "prefill_order"]


def summary(results: Results, by: str | None = None) -> pd.DataFrame:
    """Return the table that this scenario asks for; see ``docs/results.md`` for its columns.

    Raises:
        UsageError: ``by`` is no column of the cases, or this scenario's table is not one of mutants.
    """
    table = results.table
    if by is None:
        return TABLES[table](results)
    if table != "mutants":
        raise UsageError(f"--by: the table of scenario {results.scenario} is not one of mutants: leave it out")
    column = case_column(by, set(results.cases.columns) - {"mutant"})
    tables = []
    for value, cases in results.cases.groupby(column, sort=False, dropna=False):
        tables.append(mutants_table(results, cases["case_id"]))
        tables[-1].insert(0, by, value)
    return pd.concat(tables) if tables else mutants_table(results)


def mutants_table(results: Results, case_ids: "pd.Series[str] | None" = None) -> pd.DataFrame:
    """One row per mutant: largest deviation at step 1 and over all steps, and how often the output changed."""
    cases, observations = results.cases, observations_of(results)
    if case_ids is not None:
        cases, observations = (frame[frame["case_id"].isin(case_ids)] for frame in (cases, observations))
    first = observations[observations["step"] == 1].groupby("mutant")["max_abs"].max()
    share = cases.groupby("mutant")[["observable", "output_changed"]].agg(percent)
    table = pd.DataFrame(
        {
            "cases": cases.groupby("mutant").size(),
            "max|Δ| step 1": first,
            "max|Δ| all steps": observations.groupby("mutant")["max_abs"].max(),
            "observable %": share["observable"],
            "output changed %": share["output_changed"],
        }
    )
    return table.loc[in_plan_order(results, table)].rename_axis("mutant").reset_index()


def exactness_table(results: Results) -> pd.DataFrame:
    """One row per format and order: how far the clean cached path is from the full path."""
    names = {"logits": "worst |Δ| logits", "stored": "worst |Δ| stored K/V", "equal": "tokens equal %"}
    return clean_figures(results)[[*FORMAT, "runs", *names]].rename(columns=names)


def attention_table(results: Results) -> pd.DataFrame:
    """One row per format and order: deviation of the first layer's attention output, of stored rows and of logits."""
    names = {"attended": "max|Δ| attention, layer 1", "stored": "max|Δ| stored K/V", "logits": "max|Δ| logits"}
    return clean_figures(results)[[*FORMAT, "runs", *names]].rename(columns=names)


def clean_figures(results: Results) -> pd.DataFrame:
    """Return the deviations of the clean cases that ran to the end, by format and order."""
    observations = observations_of(results).query("mutant == 'clean'")
    observations["same"] = observations["argmax_cached"] == observations["argmax_full"]
    observed = observations.groupby(FORMAT, sort=False)
    cases = results.cases.query("mutant == 'clean' and outcome == 'ok'").groupby(FORMAT, sort=False)
    figures = {
        "runs": cases.size(),
        "attended": cases["attended_max_abs"].max(),
        "stored": cases["kv_max_abs"].max(),
        "logits": observed["max_abs"].max(),
        "equal": observed["same"].mean() * 100,
    }
    return pd.DataFrame(figures).reset_index()


def profile_table(results: Results) -> pd.DataFrame:
    """One row per sharpness and prefix length; per mutant, seeds whose argmax flipped and the largest deviation."""
    keys = ["sharpness", "prompt_length"]
    cases = results.cases
    worst = observations_of(results).groupby([*keys, "mutant"])["max_abs"].max().unstack("mutant")
    ok = cases[cases["outcome"] == "ok"].astype({"output_changed": bool})
    flips = ok.groupby([*keys, "mutant"])["output_changed"].sum().astype("Int64").unstack("mutant")
    seeds = ok.groupby(keys)["seed"].nunique()
    table = pd.DataFrame({"seeds": seeds})
    for mutant in in_plan_order(results, worst.T):
        if mutant != "clean":
            table[f"{mutant} flips"] = flips[mutant]
        table[f"{mutant} max|Δ|"] = worst[mutant]
    return table.reset_index()


def observations_of(results: Results) -> pd.DataFrame:
    """Return the observations of cases that ran to the end, with their case's columns."""
    columns = ["case_id", "mutant", "sharpness", "prompt_length", *FORMAT]
    cases = results.cases.loc[results.cases["outcome"] == "ok", columns]
    return results.observations.merge(cases, on="case_id")


def in_plan_order(results: Results, table: pd.DataFrame) -> list[str]:
    """Return the mutants of a table, mutants in the scenario's order, then clean and control."""
    rank = {name: index for index, name in enumerate(results.plan["mutants"])}
    return sorted(table.index, key=lambda name: (rank.get(name, len(rank)), name))


def percent(flags: pd.Series) -> float:
    """Return the share of true flags in percent, NaN where there is none to judge."""
    known = flags.dropna()
    return float(known.astype(bool).mean() * 100) if len(known) else np.nan


TABLES: dict[str, Callable[[Results], pd.DataFrame]] = {
    "mutants": mutants_table,
    "exactness": exactness_table,
    "attention": attention_table,
    "profile": profile_table,
}
