"""Writes docs/cli.md, the command reference, from the commands themselves; with --check, exits 1 if it is stale."""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from mutkv.cli.app import cli

PAGE = Path(__file__).with_name("cli.md")
HEADER = """\
# Command reference

Made by `python docs/generate.py` from the commands themselves; do not edit.

Data go to stdout, messages and progress to stderr. `NO_COLOR` is honoured. Exit codes: [exit-codes.md](exit-codes.md).
"""


def contexts(context: click.Context) -> Iterator[click.Context]:
    """Yield the context of a command and of all below it."""
    yield context
    if isinstance(context.command, click.Group):
        for name, command in sorted(context.command.commands.items()):
            yield from contexts(command.make_context(name, [], parent=context, resilient_parsing=True))


def section(context: click.Context) -> str:
    """Return one command's part of the page."""
    command = context.command
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"## {context.command_path}", f"```text\n{usage}\n```", inspect.cleandoc(command.help or "")]
    if isinstance(command, click.Group):
        parts.append("\n".join(f"- `{name}`: {first_line(each)}" for name, each in sorted(command.commands.items())))
    options = [parameter for parameter in command.get_params(context) if isinstance(parameter, click.Option)]
    rows = [row for row in (option.get_help_record(context) for option in options) if row]
    parts.append("\n".join(["| option | what it does |", "|---|---|", *(table_row(*row) for row in rows)]))
    return "\n\n".join(parts) + "\n"


def first_line(command: click.Command) -> str:
    """Return the first line of a command's help."""
    return inspect.cleandoc(command.help or "").splitlines()[0]


def table_row(option: str, text: str) -> str:
    """Return an option as a row of a Markdown table."""
    option, text = (part.replace("|", "\\|") for part in (option, " ".join(text.split())))
    return f"| `{option}` | {text} |"


def page() -> str:
    """Return the whole page."""
    root = cli.make_context("mutkv", [], resilient_parsing=True)
    return "\n".join([HEADER, *map(section, contexts(root))])


def main(arguments: list[str]) -> int:
    """Write the page, or check it."""
    if arguments == ["--check"]:
        fresh = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page()
        if not fresh:
            click.echo(f"{PAGE.name} is stale: run python docs/generate.py", err=True)
        return 0 if fresh else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
