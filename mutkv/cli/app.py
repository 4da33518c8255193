"""The ``mutkv`` command, and the one place where errors become a line and an exit code."""

import errno
import os
import sys
import traceback
from typing import NoReturn

import click
from click.shell_completion import shell_complete

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
from mutkv.streams import drop_output, prepare_streams

COMPLETION = "_MUTKV_COMPLETE"


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
    prepare_streams()
    if instruction := os.environ.get(COMPLETION):
        return shell_complete(cli, {}, "mutkv", COMPLETION, instruction)
    try:
        code = invoke()
        sys.stdout.flush()
        return code
    except click.ClickException as error:
        return fail(error.format_message().rstrip("."), ExitCode.USAGE)
    except MutkvError as error:
        return fail(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return fail("interrupted", ExitCode.INTERRUPTED)
    except SystemExit as error:
        return fail(f"internal error: some code called sys.exit({error.code})", ExitCode.INTERNAL)
    except BrokenPipeError:
        drop_output()
        return ExitCode.OK
    except OSError as error:
        if error.errno == errno.ENOSPC:
            return fail("the output could not be written: no space left", ExitCode.INCOMPLETE)
        return internal(error)
    except Exception as error:
        return internal(error)


def internal(error: Exception) -> ExitCode:
    """Report a fault of mutkv itself."""
    if os.environ.get("MUTKV_DEBUG"):
        traceback.print_exc()
    return fail(f"internal error: {one_line(error)} (MUTKV_DEBUG=1 shows where)", ExitCode.INTERNAL)


def invoke() -> int:
    """Run the command; click's own ``main`` would take Ctrl-C and a closed pipe for its own affair."""
    try:
        with cli.make_context("mutkv", sys.argv[1:]) as context:
            return int(cli.invoke(context) or ExitCode.OK)
    except click.exceptions.Exit as end:  # --help, --version
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "")
        return ExitCode.OK


def fail(text: str, code: ExitCode) -> ExitCode:
    """Print one line to stderr and return the code."""
    click.echo(f"mutkv: {' '.join(text.splitlines())}", err=True)
    return code
