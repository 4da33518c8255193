"""Options that several commands share, and the completion of names in a shell."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from mutkv.errors import MutkvError

Function = TypeVar("Function", bound=Callable[..., Any])


def output_options(function: Function) -> Function:
    """Add --json and --csv; the command gets ``style``: table, csv or json."""
    for style in ("csv", "json"):
        text = f"Print {style.upper()} instead of a table."
        function = click.option(f"--{style}", "style", flag_value=style, default=None, help=text)(function)
    return function


def mutants_option(function: Function) -> Function:
    """Add --mutants DIR, which may be repeated."""
    kind = click.Path(exists=True, file_okay=False, path_type=Path)
    text = "Also use the mutant files (*.toml) of this folder; repeatable."
    return click.option("--mutants", "folders", multiple=True, type=kind, metavar="DIR", help=text)(function)


def results_argument(function: Function) -> Function:
    """Add the optional RESULTS folder; without it the latest results are taken."""
    return click.argument("results", required=False, type=click.Path(path_type=Path))(function)


def completer(names: Callable[[], list[str]]) -> Callable[[Any, Any, str], list[CompletionItem]]:
    """Return a shell completion over names that are found only when the shell asks."""

    def complete(_context: Any, _parameter: Any, incomplete: str) -> list[CompletionItem]:
        try:
            return [CompletionItem(name) for name in names() if name.startswith(incomplete)]
        except MutkvError:
            return []

    return complete


def mutant_names() -> list[str]:
    """Return the ids of all registered mutants."""
    from mutkv.mutation.registry import load_mutants

    return list(load_mutants())


def scenario_names() -> list[str]:
    """Return the names of the shipped scenarios."""
    from mutkv.grid.scenario import scenario_files

    return list(scenario_files())


def detector_names() -> list[str]:
    """Return the names of all registered detectors."""
    from mutkv.detectors.registry import load_detectors

    return list(load_detectors())
