"""Errors a user may see: one line saying what is wrong, where, and how to mend it, with the exit code to leave by."""

from collections.abc import Iterable
from difflib import get_close_matches

from mutkv.exit_codes import ExitCode


class MutkvError(Exception):
    """An expected failure; its text is the one line that the user reads."""

    exit_code = ExitCode.USAGE


class UsageError(MutkvError):
    """An argument, a file or a name given by the user is not valid."""


class IncompleteError(MutkvError):
    """Results are missing or could not be written; what was recorded before is kept."""

    exit_code = ExitCode.INCOMPLETE


class BaselineError(MutkvError):
    """The clean engine fails its own check, or a mutant is not what its file says."""

    exit_code = ExitCode.BASELINE


class Unsupported(MutkvError):  # noqa: N818 - the protocol's word
    """An engine cannot do what was asked of it; detectors that need it are not applicable there."""


class ReplicasDisagree(Exception):  # noqa: N818 - not shown to users
    """Replicas of one group would need different control flow: they have to be run seed by seed."""


def one_line(error: BaseException) -> str:
    """Return an error's type and text on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for a name that is not registered, with the nearest known names."""
    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names) or 'none'}"
    return UsageError(f"unknown {kind} '{name}': {hint}")
