"""``mutkv detectors``: the registered checkers."""

import click

from mutkv.cli.options import output_options


@click.group()
def detectors() -> None:
    """List detectors."""


@detectors.command("list")
@output_options
def list_command(style: str | None) -> None:
    """Print one line per detector: what it needs, its threshold and its rule."""
    from mutkv.report.catalogue import detectors_table
    from mutkv.report.render import print_frame

    print_frame(detectors_table(), style or "table")
