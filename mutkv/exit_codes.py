"""The exit code of every mutkv command, so that a CI script can tell the cases apart without reading text."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit status means; the same for all commands."""

    OK = 0
    """The command did what was asked and every gate held."""

    BELOW_THRESHOLD = 1
    """A detector's recall is below ``--fail-under`` (or its lower bound below ``--fail-under-low``)."""

    USAGE = 2
    """The command line or an input file is invalid, a folder cannot be written, or results have another version."""

    INCOMPLETE = 3
    """Planned cases have no result, a detector crashed, the disk filled up, or a gate could not be decided."""

    BASELINE = 4
    """The clean engine is not exact, or a mutant of the corpus is not what its file says."""

    INTERNAL = 70
    """A fault of mutkv itself."""

    INTERRUPTED = 130
    """Ctrl-C: what was finished is kept."""
