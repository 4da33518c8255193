"""Standard output as it may be: closed, left by its reader, or without the letters that a table needs."""

import os
import sys
from io import TextIOWrapper


def prepare_streams() -> None:
    """Let no output fail for what the other end is."""
    if sys.stdout is None:  # closed by the shell
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for the whole run
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a |Δ| must not fail on a terminal that has no such letter


def drop_output() -> None:
    """Send further output nowhere: its reader left, which is nothing to complain about."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_output(text: str) -> None:
    """Write text to stdout at once; a reader that left must not change how the command ends, a gate above all."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
