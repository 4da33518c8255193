"""``mutkv mutants``: the corpus, one mutant, its witness as a run, and the check that all of it is as its files say."""

import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path

import click

from mutkv.cli.options import completer, mutant_names, mutants_option, output_options
from mutkv.exit_codes import ExitCode


@click.group()
def mutants() -> None:
    """List, show, run and check mutants."""


@mutants.command("list")
@click.option("--class", "class", metavar="CLASS", help="Only this class: position, mask, read, write, ...")
@click.option("--origin", metavar="ORIGIN", help="Only this origin: seed, reported or synthetic.")
@click.option("--path", metavar="PATH", help="Only mutants that change this path: cached, both or full.")
@click.option("--workload", metavar="WORKLOAD", help="Only mutants that this workload can show.")
@click.option("--visible", metavar="WHEN", help="Only mutants first visible then: prefill, 'step 1', later, never, ...")
@click.option("--equivalent", metavar="KIND", help="Only these: bitwise or algebraic; 'no' leaves equivalents out.")
@mutants_option
@output_options
def list_command(folders: tuple[Path, ...], style: str | None, **wanted: str | None) -> None:
    """Print one line per mutant."""
    from mutkv.mutation.registry import load_mutants, matching
    from mutkv.report.catalogue import mutants_table
    from mutkv.report.render import print_frame

    chosen = matching(load_mutants(folders), {name: value for name, value in wanted.items() if value is not None})
    print_frame(mutants_table(chosen), style or "table")


@mutants.command("new")
@click.argument("name")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("my_mutants"), help="Folder.  [default: my_mutants]"
)
def new_command(name: str, out: Path) -> None:
    """Write a commented file for a new mutant NAME, to fill in and check."""
    from mutkv.mutation.template import write_template

    path = write_template(name, out)
    click.echo(f"wrote {path}: fill it in, then: mutkv mutants check {name} --mutants {shlex.quote(str(out))}")


@mutants.command("show")
@click.argument("name", shell_complete=completer(mutant_names))
@mutants_option
@click.option("--json", "as_json", is_flag=True, help="Print the mutant's file as JSON.")
def show_command(name: str, folders: tuple[Path, ...], as_json: bool) -> None:
    """Print what mutant NAME does: its diff, where it comes from, its witness, and the commands that reproduce it."""
    from mutkv.mutation.registry import find, load_mutants
    from mutkv.report.catalogue import mutant_page, reproducing
    from mutkv.report.render import print_json, print_renderable, print_text

    mutant = find(load_mutants(folders), name)
    if as_json:
        print_json(mutant.model_dump(mode="json", by_alias=True))
    else:
        print_renderable(mutant_page(mutant), width=None)
        print_text("\n".join(reproducing(mutant, folders)) + "\n")  # whole lines, however narrow the terminal


@mutants.command("run")
@click.argument("name", shell_complete=completer(mutant_names))
@click.option("--out", type=click.Path(path_type=Path), help="Results folder.  [default: results/witness-NAME]")
@mutants_option
@output_options
def run_command(name: str, out: Path | None, folders: tuple[Path, ...], style: str | None) -> int:
    """Run the witness of mutant NAME, beside clean and control, and print what it found.

    Then `mutkv score results/witness-NAME --by mutant` tells which detectors see it.
    """
    from mutkv.cli.grid import run_plan
    from mutkv.grid.check import witness_plan
    from mutkv.mutation.registry import find, load_mutants

    return run_plan(witness_plan(find(load_mutants(folders), name)), out, 1, style)


@mutants.command("check")
@click.argument("names", nargs=-1, shell_complete=completer(mutant_names))
@mutants_option
def check_command(names: tuple[str, ...], folders: tuple[Path, ...]) -> int:
    """Measure on its witness what each mutant's file claims (all of them, or NAMES)."""
    from mutkv.api import flagging
    from mutkv.grid.check import check_mutant
    from mutkv.mutation.registry import find, load_mutants

    known = load_mutants(folders)
    chosen = [find(known, name) for name in names] if names else list(known.values())
    failures = 0
    for mutant in chosen:
        with redirect_stdout(sys.stderr):  # what a mutant prints is no result
            problems = check_mutant(mutant, flagging)
        failures += bool(problems)
        click.echo(f"{mutant.id}: {'; '.join(problems) if problems else 'ok'}")
    click.echo(f"{len(chosen) - failures} of {len(chosen)} mutants are as their files say")
    return ExitCode.BASELINE if failures else ExitCode.OK
