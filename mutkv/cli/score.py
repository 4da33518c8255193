"""``mutkv score``: which bugs each detector catches, with intervals and a gate for CI."""

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mutkv.cli.options import completer, detector_names, output_options, results_argument
from mutkv.cli.results import judge_all, warn

if TYPE_CHECKING:
    from mutkv.scoring import Score


class Share(click.FloatRange):
    """A number from 0 to 1; click's own range lets nan pass, below which nothing is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number or fail."""
        number = float(super().convert(value, param, ctx))
        return self.fail(f"{value} is not a number.", param, ctx) if math.isnan(number) else number


SHARE = Share(0, 1)


@click.command()
@results_argument
@click.option(
    "--detector",
    "specs",
    multiple=True,
    metavar="NAME|FILE.py:FUNCTION",
    shell_complete=completer(detector_names),
    help="A detector to score; repeatable.  [default: all shipped offline ones]",
)
@click.option(
    "--label",
    type=click.Choice(["output-changed", "observable"]),
    default="output-changed",
    show_default=True,
    help="What makes a faulty case a positive.",
)
@click.option("--by", metavar="COLUMN", help="Split by a column of the cases: class, mutant, prompt_length, ...")
@click.option("--fail-under", type=SHARE, help="Exit 1 if a detector's headline recall is below this.")
@click.option("--fail-under-low", type=SHARE, help="Exit 1 if its lower bound is below this.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the bootstrap over mutants."
)
@output_options
def score(
    results: Path | None,
    specs: tuple[str, ...],
    label: str,
    by: str | None,
    fail_under: float | None,
    fail_under_low: float | None,
    seed: int,
    style: str | None,
) -> int:
    """Score detectors on RESULTS (a folder; the latest results by default)."""
    from mutkv.detectors.registry import default_detectors, find_detector
    from mutkv.grid.results import load
    from mutkv.scoring import case_column, gate, score_by, score_verdicts, shortfalls

    detectors = [find_detector(spec) for spec in dict.fromkeys(specs)] or list(default_detectors())
    loaded = load(results)
    if by:
        case_column(by, loaded.cases.columns)
    warn(loaded)
    verdicts = judge_all(loaded, detectors).frame
    whole = partial(score_verdicts, scenario=loaded.scenario, completeness=loaded.completeness, label=label, seed=seed)
    split = partial(score_by, scenario=loaded.scenario, completeness=loaded.completeness, label=label, seed=seed)
    total = whole(verdicts)
    parts = split(verdicts, by) if by else {}
    show(total, parts, by, style)
    for line in shortfalls(total, fail_under, fail_under_low):
        click.echo(f"mutkv: {line}", err=True)
    if total.completeness.missing:
        click.echo(
            f"mutkv: {total.completeness.missing} cases are missing: run scenario {loaded.scenario} again", err=True
        )
    return gate(total, fail_under, fail_under_low, [detector.name for detector in detectors])


def show(total: "Score", parts: "dict[object, Score]", by: str | None, style: str | None) -> None:
    """Print a score, split or whole."""
    from mutkv.report.render import print_frame, print_json, room
    from mutkv.report.scores import by_table, flat_table, for_width, score_lines, score_table

    if style == "json":
        split = {str(value): part.to_json() for value, part in parts.items()}
        print_json(total.to_json() | ({"by": {by: split}} if by else {}))
        return
    if style == "csv":
        print_frame(flat_table(parts or {None: total}, by), style)
    else:
        table = by_table(parts, by) if by else score_table(total)
        print_frame(for_width(table, room()), "table", score_lines(total))
