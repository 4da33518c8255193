"""``mutkv grid``: plan a scenario, run it, see how far it is, show what it found."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mutkv.cli.options import completer, mutants_option, output_options, results_argument, scenario_names
from mutkv.cli.results import completeness_line, heading, show, warn
from mutkv.exit_codes import ExitCode

if TYPE_CHECKING:
    from mutkv.grid.grid import Run
    from mutkv.grid.plan import Plan
    from mutkv.grid.results import Results

DEVICES = click.Choice(["cpu", "cuda", "auto"])
scenario_argument = click.argument("scenario", default="detectors", shell_complete=completer(scenario_names))
device_option = click.option("--device", type=DEVICES, default="cpu", show_default=True, help="Where to compute.")


@click.group()
def grid() -> None:
    """Run a scenario: a grid of configurations × mutants."""


@grid.command("run")
@scenario_argument
@click.option("--out", type=click.Path(path_type=Path), help="Results folder.  [default: results/SCENARIO]")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes that compute.")
@device_option
@mutants_option
@output_options
def run_command(
    scenario: str, out: Path | None, jobs: int, device: str, folders: tuple[Path, ...], style: str | None
) -> int:
    """Run SCENARIO (a name, or a .toml file) and print what it found.

    Cases that are recorded already are not computed again. Ctrl-C keeps what is finished.
    """
    return run_plan(plan_of(scenario, device, folders), out, jobs, style)


def run_plan(plan: "Plan", out: Path | None, jobs: int, style: str | None) -> int:
    """Run a plan, print what it found and check that the clean engine is exact; return the exit code."""
    from mutkv.grid.baseline import check_baseline
    from mutkv.grid.files import locked
    from mutkv.grid.grid import prepare
    from mutkv.grid.results import RESULTS_FOLDER, load

    folder = out or RESULTS_FOLDER / plan.scenario.name
    with locked(folder):
        run = prepare(plan, folder, jobs)
        try:
            execute(run, jobs)
        except KeyboardInterrupt:
            return report_interrupt(load(folder))
    results = load(folder)
    show(results, style, figure=True)
    check_baseline(results)
    return ExitCode.INCOMPLETE if results.completeness.missing else ExitCode.OK


def plan_of(scenario: str, device: str, folders: tuple[Path, ...]) -> "Plan":
    """Return the plan of a scenario with the shipped mutants and those of the folders."""
    from mutkv.grid.manifest import resolve_device
    from mutkv.grid.plan import make_plan, select_mutants
    from mutkv.grid.scenario import find_scenario
    from mutkv.mutation.registry import load_mutants

    found = find_scenario(scenario)
    plan = make_plan(found, select_mutants(found, load_mutants(), load_mutants(folders)), resolve_device(device))
    for name in plan.unused:
        reason = "no configuration of this scenario has its features and workload"
        click.echo(f"mutkv: warning: mutant '{name}' is not run: {reason}", err=True)
    return plan


def execute(run: "Run", jobs: int) -> None:
    """Run what is pending, with a progress bar."""
    from mutkv.cli.progress import progress_bar
    from mutkv.grid.grid import executor_for

    total = len(run.plan.cases)
    if not run.todo:
        click.echo(f"nothing to compute: all {total} cases are recorded in {run.folder}", err=True)
        return
    if run.todo < total:
        click.echo(f"{total - run.todo} of {total} cases are recorded in {run.folder}, computing the rest", err=True)
    with progress_bar(run.plan.scenario.name, run.todo) as advance, executor_for(jobs) as executor:
        for finished in run.execute(executor):
            advance(finished.outcomes)


def report_interrupt(results: "Results") -> int:
    """Say what is kept and what is pending."""
    count = results.completeness
    pending = list(results.missing())
    named = ", ".join(pending[:3]) + (f" and {len(pending) - 3} more" if len(pending) > 3 else "")
    text = f"interrupted: {count.planned - count.missing} of {count.planned} cases are recorded in {results.folder}"
    click.echo(f"mutkv: {text}; pending: {named or 'none'}; the same command goes on from here", err=True)
    return ExitCode.INTERRUPTED


@grid.command("plan")
@scenario_argument
@device_option
@mutants_option
@output_options
def plan_command(scenario: str, device: str, folders: tuple[Path, ...], style: str | None) -> None:
    """Print the groups and cases of SCENARIO; run nothing."""
    from mutkv.report.render import print_frame, print_json
    from mutkv.report.status import plan_table

    plan = plan_of(scenario, device, folders)
    if style == "json":
        print_json(plan.document())
        return
    title = f"{plan.scenario.name}: {len(plan.cases)} cases in {len(plan.groups)} groups"
    print_frame(plan_table(plan), style or "table", title)


@grid.command("status")
@results_argument
@output_options
def status_command(results: Path | None, style: str | None) -> int:
    """Print how many cases of RESULTS are done, failed and missing, per mutant."""
    from mutkv.grid.results import load
    from mutkv.report.render import print_frame
    from mutkv.report.status import status_table

    loaded = load(results)
    warn(loaded)
    print_frame(status_table(loaded), style or "table", completeness_line(loaded), heading(loaded))
    return ExitCode.INCOMPLETE if loaded.completeness.missing else ExitCode.OK


@grid.command("show")
@results_argument
@click.option("--by", metavar="COLUMN", help="Split a table of mutants by a column of the cases: positions, depth, ...")
@click.option("--table", "name", metavar="NAME", help="Print this one of several tables, also where it is long data.")
@output_options
def show_command(results: Path | None, by: str | None, name: str | None, style: str | None) -> int:
    """Print again what the run of RESULTS found."""
    from mutkv.grid.results import load

    loaded = load(results)
    show(loaded, style, by, name)
    return ExitCode.INCOMPLETE if loaded.completeness.missing else ExitCode.OK
