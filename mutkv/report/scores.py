"""A score as a table: intervals beside their figures, undefined figures as n/a."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from mutkv.scoring import Interval, Score, detector_scores

FULL_WIDTH = 125
SPARED = ["positives", "recall,\ncases", "AUC,\nsource", "flagged", "tokens\nper case"]


def score_table(score: Score) -> pd.DataFrame:
    """One row per detector; the intervals are 95 % ones, on a line of their own."""
    rows = []
    for detector in score.detectors:
        row: dict[str, Any] = {"detector": detector.name, "recall": interval(detector.recall)}
        row["recall,\ncases"] = interval(detector.recall_cases)
        row |= {f"FPR\n{kind}": interval(rate) for kind, rate in detector.fpr.items()}
        row |= {"AUC": interval(detector.auc), "AUC,\nsource": interval(detector.auc_source)}
        row |= {"flagged": detector.flagged} | ({"crashed": detector.crashed} if detector.crashed else {})
        rows.append(row | {"tokens\nper case": detector.cost_tokens})
    return pd.DataFrame(rows)


def for_width(table: pd.DataFrame, width: int) -> pd.DataFrame:
    """Leave out the columns that a narrow terminal has no room for; CSV and JSON have them all."""
    return table.drop(columns=SPARED, errors="ignore") if width < FULL_WIDTH else table


def by_table(scores: Mapping[Any, Score], column: str) -> pd.DataFrame:
    """One row per value of a column and detector."""
    tables = []
    for value, score in scores.items():
        table = score_table(score)
        table.insert(0, column, "none" if value is None else str(value))
        table.insert(1, "positives", score.positives)
        tables.append(table)
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=[column, "detector"])


def flat_table(scores: Mapping[Any, Score], column: str | None) -> pd.DataFrame:
    """One row per detector (and value of a column), every figure a column of its own, as the JSON names them."""
    tables = []
    for value, score in scores.items():
        table = detector_scores(score)
        if column is not None:
            table.insert(0, column, value)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def interval(value: Interval) -> str:
    """Return a figure with its 95 % interval below."""
    if value.value is None:
        return "n/a"
    if value.low is None or value.high is None:
        return f"{value.value:.3f}"
    return f"{value.value:.3f}\n[{value.low:.2f}, {value.high:.2f}]"


def score_lines(score: Score) -> str:
    """Return what stands above the table: completeness first, then what was scored on what."""
    unscored = f"; without a positive case: {', '.join(score.unscored_mutants)}" if score.unscored_mutants else ""
    return (
        f"{score.scenario}: {score.completeness}\n"
        f"label {score.label}: {score.positives} positives, {score.harmless} harmless, "
        f"{score.negatives} benign{unscored}"
    )
