"""What a run found: the tables that belong to its kind of scenario."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from mutkv.errors import UsageError, unknown_name
from mutkv.grid.results import Results
from mutkv.report.tables.batch_shape import batch_shape_tables, batch_shape_verdicts
from mutkv.report.tables.causality import causality_tables
from mutkv.report.tables.exactness import attention_table, exactness_table
from mutkv.report.tables.gradients import gradients_tables
from mutkv.report.tables.length_profile import length_profile_tables
from mutkv.report.tables.mutants import mutants_table
from mutkv.report.tables.profile import profile_table
from mutkv.report.tables.rounding import rounding_tables
from mutkv.report.tables.training_prefix import training_prefix_tables
from mutkv.scoring import case_column

Tables = dict[str, pd.DataFrame]


@dataclass(frozen=True, slots=True)
class Summary:
    """How one kind of scenario is summed up."""

    tables: Callable[[Results], Tables]
    """Its tables by name; the first is what ``--csv`` prints."""
    data: tuple[str, ...] = ()
    """Names of tables that are data, too long for a screen."""
    judged: Callable[[Results, pd.DataFrame], Tables] | None = None
    """Its tables about detectors, made from the verdicts of all shipped ones."""


def only(name: str, table: Callable[[Results], pd.DataFrame]) -> Summary:
    """Return the summary of a kind that has one table."""
    return Summary(lambda results: {name: table(results)})


SUMMARIES: dict[str, Summary] = {
    "mutants": only("mutants", mutants_table),
    "exactness": only("exactness", exactness_table),
    "attention": only("attention", attention_table),
    "profile": only("profile", profile_table),
    "rounding": Summary(rounding_tables, data=("flips",)),
    "causality": Summary(causality_tables),
    "gradients": Summary(gradients_tables, data=("tensors",)),
    "training-prefix": Summary(training_prefix_tables, data=("curves", "cosines")),
    "length-profile": Summary(length_profile_tables, data=("profile",)),
    "batch-shape": Summary(batch_shape_tables, data=("rates",), judged=batch_shape_verdicts),
}
"""By the name of the scenario's ``table``, or of its study."""


def summary(results: Results, by: str | None = None, verdicts: pd.DataFrame | None = None) -> Tables:
    """Return the tables of a run, see ``docs/results.md``; with ``by`` that of mutants, per value of a column.

    Tables about detectors are among them if there are ``verdicts`` of the shipped ones.

    Raises:
        UsageError: ``by`` is no column of the cases, or this scenario's table is not one of mutants.
    """
    if by is not None:
        return {"mutants": mutants_by(results, by)}
    kind = kind_of(results)
    judged = {} if kind.judged is None or verdicts is None else kind.judged(results, verdicts)
    return kind.tables(results) | judged


def kind_of(results: Results) -> Summary:
    """Return how a run is summed up.

    Raises:
        UsageError: a newer mutkv has planned it.
    """
    if results.table not in SUMMARIES:
        raise UsageError(f"{results.folder / 'plan.json'}: {unknown_name('table', results.table, SUMMARIES)}")
    return SUMMARIES[results.table]


def chosen(results: Results, tables: Tables, name: str | None) -> Tables:
    """Return the table of that name; without one, those that a screen has room for.

    Raises:
        UsageError: there is no such table.
    """
    if name is None:
        return {key: table for key, table in tables.items() if key not in kind_of(results).data}
    if name not in tables:
        raise unknown_name("table", name, tables)
    return {name: tables[name]}


def mutants_by(results: Results, by: str) -> pd.DataFrame:
    """Return the table of mutants for each value of a column of the cases."""
    if results.table != "mutants":
        raise UsageError(f"--by: the table of scenario {results.scenario} is not one of mutants: leave it out")
    column = case_column(by, set(results.cases.columns) - {"mutant"})
    tables = []
    for value, cases in results.cases.groupby(column, sort=False, dropna=False):
        tables.append(mutants_table(results, cases["case_id"]))
        tables[-1].insert(0, by, value)
    return pd.concat(tables) if tables else mutants_table(results)
