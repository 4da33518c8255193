"""Scores side by side for the values of a column, each against the negatives that belong to it.

A mutant's property says nothing about benign cases, so every value faces all of them; a configuration's property
divides them too, or recall at depth 8 would be held against false alarms at depth 1.
"""

from collections.abc import Collection
from typing import Any

import pandas as pd

from mutkv.errors import unknown_name
from mutkv.grid.completeness import Completeness
from mutkv.scoring.population import DEFAULT_LABEL, HEADLINE_PATHS
from mutkv.scoring.score import Score, score_verdicts

ALIASES = {"class": "mutant_class"}
OF_THE_MUTANT = frozenset({"mutant", "mutant_class", "origin", "path", "equivalent", "kind", "reached", "infected"})
OF_ITS_EFFECT = frozenset({"observable", "output_changed", "first_infected_layer"}) | {
    f"first_{what}_{part}" for what in ("observable", "changed") for part in ("request", "step")
}
MUTANT_PROPERTIES = OF_THE_MUTANT | OF_ITS_EFFECT
VERDICT_COLUMNS = frozenset({"detector", "threshold", "score", "flag", "crashed", "cost_tokens"})


def score_by(
    verdicts: pd.DataFrame,
    column: str,
    *,
    scenario: str,
    completeness: Completeness,
    label: str = DEFAULT_LABEL,
    seed: int = 0,
) -> dict[Any, Score]:
    """Return one score per value of a column of ``cases``, values sorted, cases without one under None at the end.

    "class" is short for "mutant_class".

    Raises:
        UsageError: no such column, or an unknown label.
    """
    name = case_column(column, set(verdicts.columns) - VERDICT_COLUMNS)
    benign = verdicts["kind"] != "faulty"
    faulty = ~benign & verdicts["path"].isin(HEADLINE_PATHS)
    shared = name in MUTANT_PROPERTIES
    values = verdicts.loc[faulty if shared else faulty | benign, name].drop_duplicates().sort_values()
    scores = {}
    for value in values.astype(object):
        same = verdicts[name].isna() if pd.isna(value) else verdicts[name] == value
        rows = verdicts[same | benign] if shared else verdicts[same]
        key = None if pd.isna(value) else value
        scores[key] = score_verdicts(rows, scenario=scenario, completeness=completeness, label=label, seed=seed)
    return scores


def case_column(name: str, known: Collection[str]) -> str:
    """Return the full name of a column of ``cases``; UsageError if it is not among the known ones."""
    full = ALIASES.get(name, name)
    if full not in known:
        raise unknown_name("column", name, {*known, *ALIASES})
    return full
