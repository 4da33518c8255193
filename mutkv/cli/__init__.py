"""The command line: click commands, one file per group of commands, and no logic of its own."""

from mutkv.cli.app import main

__all__ = ["main"]
