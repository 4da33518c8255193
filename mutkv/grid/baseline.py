"""The clean engine's own test: where arithmetic is exact, a deviation is 0.0 or a bug of mutkv."""

from mutkv.errors import BaselineError
from mutkv.grid.results import Results


def check_baseline(results: Results) -> None:
    """Raise BaselineError if a clean case has no finite result, or deviates at all under exact arithmetic."""
    cases = results.cases
    clean = cases[cases["mutant"] == "clean"]
    failed = clean[clean["outcome"] != "ok"]
    if len(failed):
        row = failed.iloc[0]
        what = f"the clean engine is {row['outcome']} in {len(failed)} of {len(clean)} clean cases"
        raise BaselineError(f"{what}, first configuration {row['configuration_id']}: nothing can be compared with it")
    check_causality(results)
    exact = clean.loc[clean["kind"] == "clean", ["case_id", "configuration_id"]]
    worst = results.observations.merge(exact, on="case_id").nlargest(1, "max_abs")
    if len(worst) and worst["max_abs"].iloc[0] > 0:
        row = worst.iloc[0]
        where = f"configuration {row['configuration_id']}, step {row['step']}"
        raise BaselineError(f"the clean engine deviates by {row['max_abs']:g} under exact arithmetic ({where})")


def check_causality(results: Results) -> None:
    """Raise BaselineError if the study of causality measured anything but 0.0 in the clean engine."""
    if results.study != "causality":
        return
    moved = results.measurements.query("kind == 'clean' and value > 0")
    if len(moved):
        row = moved.iloc[0]
        where = f"configuration {row['configuration_id']}, {row['part']}"
        raise BaselineError(f"the clean engine is not causal: {row['quantity']} is {row['value']:g} ({where})")
