"""``mutkv scenarios``: what grids ship with mutkv."""

import click

from mutkv.cli.options import completer, output_options, scenario_names


@click.group()
def scenarios() -> None:
    """List and show scenarios."""


@scenarios.command("list")
@output_options
def list_command(style: str | None) -> None:
    """Print the shipped scenarios with their size."""
    from mutkv.report.catalogue import scenarios_table
    from mutkv.report.render import print_frame

    print_frame(scenarios_table(), style or "table")


@scenarios.command("show")
@click.argument("name", shell_complete=completer(scenario_names))
def show_command(name: str) -> None:
    """Print the file of scenario NAME, to copy and change."""
    from mutkv.grid.scenario import find_scenario
    from mutkv.report.render import print_text

    print_text(find_scenario(name).source_path.read_text(encoding="utf-8"))
