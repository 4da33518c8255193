"""How much of a plan there is, before and while it runs: tables of groups and of cases."""

import pandas as pd

from mutkv.grid.plan import Plan
from mutkv.grid.results import Results


def plan_table(plan: Plan) -> pd.DataFrame:
    """One row per group: the columns in which groups differ, seeds, and cases."""
    rows = [
        group.configuration.columns()
        | {
            "seeds": len({case.configuration.seed for case in group.cases}),
            "cases per seed": len({case.mutant for case in group.cases}),
            "cases": len(group.cases),
        }
        for group in plan.groups
    ]
    frame = pd.DataFrame(rows).drop(columns="seed")
    counted = ["seeds", "cases per seed", "cases"]
    varying = [name for name in frame.columns if name in counted or frame[name].nunique() > 1]
    return frame[varying]


def status_table(results: Results) -> pd.DataFrame:
    """One row per mutant: planned, done, failed and missing cases."""
    planned = [
        {"mutant": mutant, "content_key": key}
        for group in results.plan["groups"]
        for _, mutant, _, key in group["cases"]
    ]
    recorded = results.cases[["content_key", "outcome"]]
    frame = pd.DataFrame(planned, columns=["mutant", "content_key"]).merge(recorded, on="content_key", how="left")
    groups = frame.groupby("mutant", sort=False)["outcome"]
    table = pd.DataFrame({"planned": groups.size(), "done": groups.apply(lambda outcome: (outcome == "ok").sum())})
    table["failed"] = groups.count() - table["done"]
    table["missing"] = table["planned"] - table["done"] - table["failed"]
    return table.reset_index()
