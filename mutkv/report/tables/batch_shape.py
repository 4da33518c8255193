"""What a batch does to a correct engine: the same request alone and among others, and who calls that a bug.

Native kernels choose their order of additions by shape. Every deviation in these tables is of a clean engine.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from mutkv.grid.results import Results
from mutkv.report.tables.common import apart_from, no_tables, observations_of
from mutkv.scoring import score_by
from mutkv.scoring.interval import proportion

TIGHT = 1e-6
"""The tolerance of which the source says that a correct engine fails it."""


def batch_shape_tables(results: Results) -> dict[str, pd.DataFrame]:
    """Return ``deviation``: how far a request in a batch is from the same request alone."""
    if results.cases.query("mutant == 'clean' and outcome == 'ok'").empty:
        return no_tables("deviation")
    return {"deviation": deviation_table(results)}


def batch_shape_verdicts(results: Results, verdicts: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return ``detectors``, recall beside false alarms by batch, and ``rates``, the false alarms with intervals."""
    rates = rates_table(verdicts)
    if rates.empty:
        return no_tables("detectors", "rates")
    return {"detectors": detectors_table(results, verdicts, rates), "rates": rates}


def deviation_table(results: Results) -> pd.DataFrame:
    """One row per format and batch: the cached path in a batch against the request alone, without and with a cache."""
    clean = observations_of(results, "mutant", "storage", "batch").query("mutant == 'clean'")
    clean = clean.assign(flip=clean["argmax_cached"] != clean["argmax_full"], over=clean["max_abs"] > TIGHT)
    groups = clean.groupby(["storage", "batch"])
    requests = clean.groupby(["storage", "batch", "case_id", "row"], sort=False)[["flip", "over"]].any()
    by_request = requests.groupby(["storage", "batch"])
    figures = {
        "requests": by_request.size(),
        "median|Δ|": groups["max_abs"].median(),
        "max|Δ|": groups["max_abs"].max(),
        "max|Δ| batch to alone": alone_deviation(results),
        "requests with a flip": by_request["flip"].sum(),
        "requests over 1e-6 %": by_request["over"].mean() * 100,
    }
    return pd.DataFrame(figures).reset_index()


def alone_deviation(results: Results) -> pd.Series:
    """Return per format and batch how far request 0 decoded in a batch is from the same request decoded alone.

    Compared while both were fed the same tokens: after a flip they are different texts.
    """
    cases = results.cases.query("mutant == 'clean' and outcome == 'ok'")
    cases = cases.assign(request_id=apart_from(cases, "batch"))
    logits: pd.DataFrame = pd.concat([first_request(results, case) for case in cases.to_dict("records")])
    alone = logits.loc[logits["batch"] == 1, ["request_id", "step", "forced_token", "logits"]]
    pairs = logits.merge(alone, on=["request_id", "step"], suffixes=("", "_alone"))
    agrees = pairs["forced_token"] == pairs["forced_token_alone"]
    pairs = pairs[agrees.groupby([pairs["request_id"], pairs["batch"]]).cummin()]
    pairs["deviation"] = [abs(a - b).max() for a, b in zip(pairs["logits"], pairs["logits_alone"], strict=True)]
    return pairs.groupby(["storage", "batch"])["deviation"].max()


def first_request(results: Results, case: Mapping[Any, Any]) -> pd.DataFrame:
    """Return the observations of row 0 of a case, with its cached logits."""
    names = ["row", "step", "forced_token", "logits_cached"]
    columns = results.columns(case["part"], names)
    rows = slice(case["first"], case["first"] + case["observations"])
    frame = pd.DataFrame({name: list(columns[name][rows]) for name in names}).rename(
        columns={"logits_cached": "logits"}
    )
    return frame[frame["row"] == 0].assign(**{name: case[name] for name in ("request_id", "storage", "batch")})


def rates_table(verdicts: pd.DataFrame) -> pd.DataFrame:
    """One row per format, batch and detector: the share of clean cases it flags, with Clopper and Pearson's interval.

    A case is a batch, and one of its requests is enough to flag it.
    """
    clean = verdicts[verdicts["kind"] == "clean-native"]
    rows = []
    for key, cases in clean.groupby(["storage", "batch", "detector"], sort=False):
        share = proportion(int(cases["flag"].sum()), len(cases), "exact")
        rows.append([*key, len(cases), share.value, share.low, share.high])
    return pd.DataFrame(rows, columns=["storage", "batch", "detector", "clean cases", "FPR", "low", "high"])


def detectors_table(results: Results, verdicts: pd.DataFrame, rates: pd.DataFrame) -> pd.DataFrame:
    """One row per format and detector: recall with its 95 % interval, and the false alarms in each size of batch."""
    scores = score_by(verdicts, "storage", scenario=results.scenario, completeness=results.completeness)
    false_alarms = rates.pivot(index=["storage", "detector"], columns="batch", values="FPR")
    rows = []
    for storage, score in scores.items():
        for detector in score.detectors:
            row = {"storage": storage, "detector": detector.name, "threshold": detector.threshold}
            row |= {"recall": detector.recall.value, "low": detector.recall.low, "high": detector.recall.high}
            shares = false_alarms.loc[(storage, detector.name)]
            rows.append(row | {f"FPR, batch of {batch}": share for batch, share in shares.items()})
    return pd.DataFrame(rows)
