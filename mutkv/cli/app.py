"""The ``mutkv`` command, and the one place where errors become a line and an exit code."""

import os
import sys
import traceback
from typing import NoReturn

import click

from mutkv import __version__
from mutkv.cli.completion import completion
from mutkv.cli.detectors import detectors
from mutkv.cli.grid import grid
from mutkv.cli.mutants import mutants
from mutkv.cli.scenarios import scenarios
from mutkv.cli.score import score
from mutkv.cli.weights import weights
from mutkv.errors import MutkvError, one_line
from mutkv.exit_codes import ExitCode


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="mutkv")
def cli() -> None:
    """Score checkers of KV caches: inject one-line cache bugs, record both paths, see which bugs a check misses.

    Start with `mutkv grid run`, then `mutkv score --detector every-step --detector one-step`.
    """


for command in (grid, score, mutants, detectors, scenarios, weights, completion):
    cli.add_command(command)


def main() -> NoReturn:
    """Run the command line; every failure is one line on stderr and a documented exit code."""
    sys.exit(run())


def run() -> int:
    """Return the exit code of the command in ``sys.argv``."""
    try:
        return int(cli.main(prog_name="mutkv", standalone_mode=False) or ExitCode.OK)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help())
        return ExitCode.OK
    except click.ClickException as error:
        return fail(error.format_message().rstrip("."), ExitCode.USAGE)
    except MutkvError as error:
        return fail(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return fail("interrupted", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left: nothing to complain about
        return ExitCode.OK
    except Exception as error:
        if os.environ.get("MUTKV_DEBUG"):
            traceback.print_exc()
        text = one_line(error)
        return fail(f"internal error: {text} (MUTKV_DEBUG=1 shows where)", ExitCode.INTERNAL)


def fail(text: str, code: ExitCode) -> ExitCode:
    """Print one line to stderr and return the code."""
    click.echo(f"mutkv: {text}", err=True)
    return code
