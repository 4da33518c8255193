"""``mutkv mutants``: the corpus, one mutant, and the check that all of it is as its files say."""

import sys
from contextlib import redirect_stdout
from pathlib import Path

import click

from mutkv.cli.options import completer, mutant_names, mutants_option, output_options
from mutkv.exit_codes import ExitCode


@click.group()
def mutants() -> None:
    """List, show and check mutants."""


@mutants.command("list")
@mutants_option
@output_options
def list_command(folders: tuple[Path, ...], style: str | None) -> None:
    """Print one line per mutant."""
    from mutkv.mutation.registry import load_mutants
    from mutkv.report.catalogue import mutants_table
    from mutkv.report.render import print_frame

    print_frame(mutants_table(load_mutants(folders)), style or "table")


@mutants.command("show")
@click.argument("name", shell_complete=completer(mutant_names))
@mutants_option
@click.option("--json", "as_json", is_flag=True, help="Print the mutant's file as JSON.")
def show_command(name: str, folders: tuple[Path, ...], as_json: bool) -> None:
    """Print what mutant NAME does: its diff, where it comes from, its witness."""
    from mutkv.mutation.registry import find, load_mutants
    from mutkv.report.catalogue import mutant_page
    from mutkv.report.render import print_json, print_renderable

    mutant = find(load_mutants(folders), name)
    if as_json:
        print_json(mutant.model_dump(mode="json", by_alias=True))
    else:
        print_renderable(mutant_page(mutant), width=None)


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
