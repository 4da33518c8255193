"""The table of mutants: how far each deviates, and how often it changes the output."""

import pandas as pd

from mutkv.grid.results import Results
from mutkv.report.tables.common import in_plan_order, observations_of, percent


def mutants_table(results: Results, case_ids: "pd.Series[str] | None" = None) -> pd.DataFrame:
    """One row per mutant: largest deviation at step 1 and over all steps, and how often the output changed."""
    cases, observations = results.cases, observations_of(results, "mutant")
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
