"""The figures of every detector on one set of verdicts, and the result that ``mutkv score`` prints or writes as JSON.

Undefined figures are None throughout, never a number that looks like one (an AUC of 0.5, a recall of 0).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from mutkv.grid.completeness import Completeness
from mutkv.scoring.auc import partial_auc
from mutkv.scoring.interval import Interval, bootstrap, proportion
from mutkv.scoring.population import BENIGN, DEFAULT_LABEL, FAILED, HARMLESS, POSITIVE, Sample, assign_roles


@dataclass(frozen=True, slots=True)
class DetectorScore:
    """What one detector reached on the faulty and benign cases that it gave a verdict on.

    ``recall`` is the mean over mutants, ``recall_cases`` the share of positive cases; ``fpr`` is per kind of benign
    case. ``auc`` and ``partial_auc`` set positives against benign cases, ``auc_source`` against harmless ones too.
    ``cost_tokens`` is the mean per case. ``cases`` is the number of verdicts, crashed ones included; not in the JSON.
    """

    name: str
    threshold: float | None
    recall: Interval
    recall_cases: Interval
    fpr: Mapping[str, Interval]
    auc: Interval
    auc_source: Interval
    partial_auc: float | None
    flagged: int
    crashed: int
    cost_tokens: float | None
    cases: int

    def to_json(self) -> dict[str, Any]:
        """Return the detector's entry in ``score --json``."""
        entry = asdict(self)
        del entry["cases"]
        return entry


@dataclass(frozen=True, slots=True)
class Score:
    """All figures of one scoring; counts are cases, ``negatives`` are the benign ones, ``seed`` is the bootstrap's."""

    scenario: str
    label: str
    completeness: Completeness
    positives: int
    negatives: int
    harmless: int
    unscored_mutants: tuple[str, ...]
    seed: int
    detectors: tuple[DetectorScore, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``score --json``; undefined figures are None."""
        detectors = [detector.to_json() for detector in self.detectors]
        return asdict(self) | {"unscored_mutants": list(self.unscored_mutants), "detectors": detectors}


def score_verdicts(
    verdicts: pd.DataFrame, *, scenario: str, completeness: Completeness, label: str = DEFAULT_LABEL, seed: int = 0
) -> Score:
    """Score every detector of ``verdicts`` (case × detector, with the columns of ``cases``), in order of appearance.

    A detector without a verdict on some case is scored on the others.

    Raises:
        UsageError: ``label`` is neither "output-changed" nor "observable".
    """
    verdicts = assign_roles(verdicts, label)
    cases = verdicts.drop_duplicates("case_id")
    count = cases["role"].value_counts()
    mutants = {role: set(cases.loc[cases["role"] == role, "mutant"]) for role in (POSITIVE, HARMLESS, FAILED)}
    return Score(
        scenario=scenario,
        label=label,
        completeness=completeness,
        positives=int(count.get(POSITIVE, 0)),
        negatives=int(count.get(BENIGN, 0)),
        harmless=int(count.get(HARMLESS, 0)),
        unscored_mutants=tuple(sorted((mutants[HARMLESS] | mutants[FAILED]) - mutants[POSITIVE])),
        seed=seed,
        detectors=tuple(
            _score_detector(str(name), rows, seed)
            for name, rows in verdicts.groupby("detector", sort=False, observed=True)
        ),
    )


def detector_scores(score: Score) -> pd.DataFrame:
    """Return one row per detector, columns named by their path in the JSON: ``recall.low``, ``fpr.control.value`` …"""
    return pd.json_normalize(score.to_json()["detectors"]).rename(columns={"name": "detector"})


def _score_detector(name: str, verdicts: pd.DataFrame, seed: int) -> DetectorScore:
    sample = Sample.of(verdicts)
    mutants = len(sample.mutants)
    judged = pd.concat([sample.positive, sample.harmless, sample.benign])
    if len(judged) and judged["crashed"].all():
        return _broken(name, judged)
    return DetectorScore(
        name=name,
        threshold=_defined(verdicts["threshold"].iloc[0]),
        recall=bootstrap(sample.recall, mutants, seed),
        recall_cases=proportion(int(sample.positive["flag"].sum()), len(sample.positive), "wilson"),
        fpr={
            str(kind): proportion(int(rows["flag"].sum()), len(rows), "exact")
            for kind, rows in sample.benign.groupby("kind", observed=True)
        },
        auc=bootstrap(sample.auc, mutants, seed),
        auc_source=bootstrap(sample.auc_source, mutants, seed),
        partial_auc=partial_auc(sample.positive["score"].to_numpy(float), sample.benign["score"].to_numpy(float)),
        flagged=int(judged["flag"].sum()),
        crashed=int(judged["crashed"].sum()),
        cost_tokens=_defined(judged["cost_tokens"].mean()),
        cases=len(judged),
    )


def _broken(name: str, judged: pd.DataFrame) -> DetectorScore:
    """Return the score of a detector that crashed on every case: nothing was measured, so every figure is undefined."""
    threshold, cost = _defined(judged["threshold"].iloc[0]), _defined(judged["cost_tokens"].mean())
    unknown, count = Interval(), len(judged)
    fpr = {str(kind): unknown for kind in judged.loc[judged["role"] == BENIGN, "kind"].unique()}
    return DetectorScore(name, threshold, unknown, unknown, fpr, unknown, unknown, None, 0, count, cost, count)


def _defined(value: float) -> float | None:
    return None if pd.isna(value) else float(value)
