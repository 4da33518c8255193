"""Tables of the clean engine alone: how far its cached path is from its full path, by format and order of sums."""

import pandas as pd

from mutkv.grid.results import Results
from mutkv.report.tables.common import FORMAT, observations_of


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
    observations = observations_of(results, "mutant", *FORMAT).query("mutant == 'clean'")
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
