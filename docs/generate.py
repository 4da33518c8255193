"""Writes what the code knows into docs: cli.md from the commands, the tables of mutants.md from the mutants' files.

With --check it writes nothing, and exits 1 if a page is stale.
"""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from mutkv.cli.app import cli
from mutkv.detectors.registry import shipped_detectors
from mutkv.mutation.registry import load_shipped
from mutkv.report.corpus_page import corpus_page, markdown_table
from mutkv.resources import shipped

DOCS = Path(__file__).parent
BEGIN = "<!-- Made by `python docs/generate.py` from the mutants' files, down to the next comment; do not edit. -->\n"
END = "<!-- End of the tables. -->\n"
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
    parts.append(markdown_table(("option", "what it does"), ((f"`{option}`", text) for option, text in rows)))
    return "\n\n".join(parts) + "\n"


def first_line(command: click.Command) -> str:
    """Return the first line of a command's help."""
    return inspect.cleandoc(command.help or "").splitlines()[0]


def command_page() -> str:
    """Return the whole command reference."""
    root = cli.make_context("mutkv", [], resilient_parsing=True)
    return "\n".join([HEADER, *map(section, contexts(root))])


def mutants_page(text: str) -> str:
    """Return the page of mutants with fresh tables between its two comments."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise SystemExit(f"mutants.md needs these two lines once, in this order:\n{BEGIN}{END}")
    mutants = {mutant.id: mutant for mutant in load_shipped(shipped("mutants"))}
    tables = corpus_page(mutants, [detector.name for detector in shipped_detectors()])
    return f"{text.split(BEGIN)[0]}{BEGIN}\n{tables}\n{END}{text.split(END)[1]}"


def pages() -> dict[Path, str]:
    """Return the text that each page should have."""
    written_by_hand = (DOCS / "mutants.md").read_text(encoding="utf-8")
    return {DOCS / "cli.md": command_page(), DOCS / "mutants.md": mutants_page(written_by_hand)}


def main(arguments: list[str]) -> int:
    """Write the pages, or check them."""
    stale = {path: text for path, text in pages().items() if not is_fresh(path, text)}
    for path, text in stale.items():
        if arguments == ["--check"]:
            click.echo(f"{path.name} is stale: run python docs/generate.py", err=True)
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if stale and arguments == ["--check"] else 0


def is_fresh(path: Path, text: str) -> bool:
    """Whether a page has this text."""
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
