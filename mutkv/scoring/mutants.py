"""Mutant by mutant: how much of each every detector sees, and who kills it.

Faults of the full path or of both paths, which no headline counts, have their rows here.
"""

import pandas as pd

from mutkv.scoring.population import DEFAULT_LABEL, FAILED, HARMLESS, PATHS, POSITIVE, assign_roles

MUTANT_COLUMNS = ("mutant_class", "origin", "path", "positives", "harmless")


def mutant_scores(verdicts: pd.DataFrame, label: str = DEFAULT_LABEL) -> pd.DataFrame:
    """Return one row per faulty mutant: ``mutant``, ``MUTANT_COLUMNS``, and a recall column per detector.

    ``positives`` and ``harmless`` count cases. A recall is NaN where the detector has no verdict on a positive.

    Raises:
        UsageError: an unknown label.
    """
    rows = assign_roles(verdicts, label, PATHS)
    rows = rows[rows["role"].isin((POSITIVE, HARMLESS, FAILED))]
    positive = rows["role"] == POSITIVE
    rows = rows.assign(positives=positive, harmless=rows["role"] == HARMLESS)
    by_mutant = rows.drop_duplicates("case_id").groupby("mutant", observed=True)
    counts = by_mutant[["positives", "harmless"]].sum().astype(int)
    recall = rows[positive].groupby(["mutant", "detector"], observed=True)["flag"].mean().unstack()
    recall = recall.reindex(index=counts.index, columns=list(verdicts["detector"].unique())).astype(float)
    return by_mutant[["mutant_class", "origin", "path"]].first().join([counts, recall]).reset_index()


def killers(scores: pd.DataFrame) -> pd.DataFrame:
    """Return for each row of ``mutant_scores`` the detectors that flag a positive, and those that flag every one.

    Columns ``mutant``, ``killed_by`` and ``always_killed_by``; the last two hold lists of detector names.
    """
    recall = scores.drop(columns=["mutant", *MUTANT_COLUMNS])
    masks = {"killed_by": recall > 0, "always_killed_by": recall == 1}
    names = {column: [list(mask.columns[row]) for row in mask.to_numpy(bool)] for column, mask in masks.items()}
    return pd.DataFrame({"mutant": scores["mutant"], **names})
