"""What several tables start from: the observations of cases that ran to the end, and the order of mutants."""

import numpy as np
import pandas as pd

from mutkv.configuration import CONFIGURATION_COLUMNS
from mutkv.grid.results import Results

FORMAT = ["storage", "accumulator", "prefill_order"]


def observations_of(results: Results, *names: str) -> pd.DataFrame:
    """Return the observations of cases that ran to the end, with these columns of their case."""
    columns = ["case_id", *names]
    cases = results.cases.loc[results.cases["outcome"] == "ok", columns]
    return results.observations.merge(cases, on="case_id")


def apart_from(cases: pd.DataFrame, *names: str) -> pd.Series:
    """Return a label per case of all configuration columns but these: equal where only these differ."""
    columns = [name for name in CONFIGURATION_COLUMNS if name not in names]
    return pd.Series([" ".join(map(str, row)) for row in cases[columns].to_numpy()], cases.index, dtype=str)


def measured(results: Results) -> pd.DataFrame:
    """Return what a study measured in cases that ran to the end."""
    found = results.measurements
    return found[found["outcome"] == "ok"]


def in_plan_order(results: Results, table: pd.DataFrame) -> list[str]:
    """Return the mutants of a table, mutants in the scenario's order, then clean and control."""
    rank = {name: index for index, name in enumerate(results.plan["mutants"])}
    return sorted(table.index, key=lambda name: (rank.get(name, len(rank)), name))


def percent(flags: pd.Series) -> float:
    """Return the share of true flags in percent, NaN where there is none to judge."""
    known = flags.dropna()
    return float(known.astype(bool).mean() * 100) if len(known) else np.nan


def no_tables(*names: str) -> dict[str, pd.DataFrame]:
    """Return the tables of a run of which nothing is recorded yet."""
    return {name: pd.DataFrame() for name in names}
