"""What commands that read results share: their warnings, the verdicts of detectors, the tables and the figure."""

import shlex
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from mutkv.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from mutkv.detectors.detector import Detector
    from mutkv.detectors.judge import Verdicts
    from mutkv.grid.results import Results


def warn(results: "Results") -> None:
    """Name mutants that failed, with the first reason, and parts that cannot be read, if any."""
    failed = results.cases[results.cases["outcome"] != "ok"]
    for mutant, cases in failed.groupby("mutant", sort=False):
        total, first = (results.cases["mutant"] == mutant).sum(), cases.iloc[0]
        why = first["error"] if isinstance(first["error"], str) else "a figure is not finite"
        reason = f"first: {first['outcome']}, {why}"
        click.echo(f"mutkv: warning: {mutant} failed in {len(cases)} of {total} cases, {reason}", err=True)
    for name in results.unreadable:
        fix = "its cases count as missing, 'mutkv grid run' computes them again"
        click.echo(f"mutkv: warning: {results.folder}: part {name} is truncated or damaged; {fix}", err=True)


def judge_all(results: "Results", detectors: "Sequence[Detector]") -> "Verdicts":
    """Return the verdicts of all detectors, with progress and warnings on stderr."""
    from mutkv.cli.progress import progress_bar
    from mutkv.detectors.judge import judge

    with progress_bar("scoring", len(results.cases)) as advance:
        seen = 0

        def step(done: int, _total: int) -> None:
            nonlocal seen
            seen, more = done, done - seen
            advance({"judged": more})

        with redirect_stdout(sys.stderr):  # what a detector prints is no result
            verdicts = judge(results, detectors, on_progress=step)
    for warning in verdicts.warnings:
        click.echo(f"mutkv: warning: {warning}", err=True)
    return verdicts


def show(
    results: "Results", style: str | None, by: str | None = None, name: str | None = None, figure: bool = False
) -> None:
    """Print completeness, the scenario's tables and the next command; draw its figure, if it has one."""
    from mutkv.report.render import print_tables
    from mutkv.report.summary import chosen

    warn(results)
    tables = tables_of(results, by)
    shown = chosen(results, tables, name)
    print_tables(shown, style or "table", completeness_line(results), heading(results))
    more = [table for table in tables if table not in shown]
    if style is None and name is None and more:
        folder = shlex.quote(str(results.folder))
        click.echo(f"more tables: {', '.join(more)} (mutkv grid show {folder} --table NAME)")
    if figure:
        draw_figure(results, tables)
    if style is None and results.table == "mutants":
        click.echo(f"next: mutkv score {shlex.quote(str(results.folder))} --detector every-step --detector one-step")


def tables_of(results: "Results", by: str | None) -> "dict[str, pd.DataFrame]":
    """Return the tables of a run; those about detectors take their verdicts first."""
    from mutkv.detectors.judge import judgeable
    from mutkv.detectors.registry import shipped_detectors
    from mutkv.report.summary import kind_of, summary

    if by is not None or kind_of(results).judged is None:
        return summary(results, by)
    chosen = judgeable(results, shipped_detectors())
    for detector in set(shipped_detectors()) - set(chosen):
        reason = "it runs cases again, and they were recorded with another engine"
        click.echo(f"mutkv: warning: detector '{detector.name}' is left out: {reason}", err=True)
    return summary(results, verdicts=judge_all(results, chosen).frame)


def draw_figure(results: "Results", tables: "dict[str, pd.DataFrame]") -> None:
    """Draw the figure of a complete run into its folder; one that cannot be written costs a warning, not the run."""
    from mutkv.report.figures import draw

    if results.completeness.missing:
        return
    try:
        files = draw(results.table, tables, results.folder / "figures", results.scenario)
    except UsageError as error:
        click.echo(f"mutkv: warning: no figure: {error}", err=True)
        return
    if files:
        click.echo(f"figure: {' and '.join(map(str, files))}", err=True)


def heading(results: "Results") -> dict[str, object]:
    """Return what JSON output says beside its rows."""
    return {"scenario": results.scenario, "completeness": asdict(results.completeness)}


def completeness_line(results: "Results") -> str:
    """Return the first line of every report."""
    return f"{results.scenario}: {results.completeness}"
