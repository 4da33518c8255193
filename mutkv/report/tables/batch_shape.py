"""What a batch does to a right engine: the same request alone and among others, and who calls that a bug.

Native kernels choose their order of additions by shape. Every deviation in these tables is of a clean engine.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from mutkv.detectors.detector import Detector
from mutkv.detectors.judge import judge
from mutkv.detectors.registry import default_detectors, shipped_detectors
from mutkv.grid.results import Results
from mutkv.grid.source import engine_digest
from mutkv.report.tables.common import apart_from, no_tables, observations_of
from mutkv.scoring import DetectorScore, Interval, score_by

TIGHT = 1e-6
"""The tolerance of which the source says that a correct engine fails it."""


def batch_shape_tables(results: Results) -> dict[str, pd.DataFrame]:
    """Return ``deviation`` per format and batch, and ``detectors``: their false alarms beside their recall."""
    clean = results.cases.query("mutant == 'clean' and outcome == 'ok'")
    if clean.empty:
        return no_tables("deviation", "detectors")
    return {"deviation": deviation_table(results), "detectors": detectors_table(results)}


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
        f"over {TIGHT:g} %": by_request["over"].mean() * 100,
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


def detectors_table(results: Results) -> pd.DataFrame:
    """One row per format and shipped detector: the share of clean cases it flags, and its recall; 95 % intervals."""
    same_engine = results.plan["engine_digest"] == engine_digest()
    # kv-compare runs the cases again, which takes the engine that made them.
    verdicts = judge(results, shipped_detectors() if same_engine else default_detectors()).frame
    scores = score_by(verdicts, "storage", scenario=results.scenario, completeness=results.completeness)
    rows = [
        detector_row(storage, detector, {each.name: each for each in score.detectors}.get(detector.name))
        for storage, score in scores.items()
        for detector in shipped_detectors()
    ]
    figures = [f"{name}{bound}" for name in ("FPR", "recall") for bound in ("", " low", " high")]
    return pd.DataFrame(rows, columns=["storage", "detector", "threshold", *figures])


def detector_row(storage: str, detector: Detector, score: DetectorScore | None) -> dict[str, Any]:
    """Return a detector's row; without figures where it was not judged."""
    row: dict[str, Any] = {"storage": storage, "detector": detector.name, "threshold": detector.threshold}
    if score is None:
        return row
    for name, figure in (("FPR", score.fpr.get("clean-native", Interval())), ("recall", score.recall)):
        row |= {name: figure.value, f"{name} low": figure.low, f"{name} high": figure.high}
    return row
