"""Running a mutant, which may raise, loop for ever or leave the program: whatever it does becomes an outcome."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mutkv.errors import BaselineError, one_line
from mutkv.grid.limits import CaseTimeout, time_limit
from mutkv.grid.plan import REFERENCE
from mutkv.mutation.copy import MutatedPackage, load_copy
from mutkv.mutation.mutant import Mutant

T = TypeVar("T")
LEAST_SECONDS, PATIENCE = 20.0, 50
"""A mutant may take this long, and this many times as long as the clean engine took, before it is a timeout."""


@dataclass(frozen=True, slots=True)
class Attempt(Generic[T]):
    """How a mutant's run ended; ``value`` is None unless the status is ``ok``."""

    status: str
    reached: bool
    error: str | None = None
    value: T | None = None


def attempt(mutant: Mutant, clean_seconds: float, work: Callable[[MutatedPackage], T]) -> Attempt[T]:
    """Do some work with a mutated copy of the engine; ``clean_seconds`` is what the clean engine took for it.

    Raises:
        BaselineError: the work found that the mutant is not what its file says.
    """
    limit = LEAST_SECONDS + PATIENCE * clean_seconds
    package: MutatedPackage | None = None
    try:
        with time_limit(limit):
            package = load_copy(REFERENCE, mutant)
            package.reset_reached()
            value = work(package)
    except BaselineError:
        raise
    except (Exception, SystemExit, CaseTimeout) as error:
        late = isinstance(error, CaseTimeout)
        text = f"over {limit:.1f} s" if late else one_line(error)[:200]
        return Attempt("timeout" if late else "crashed", package is not None and package.reached, text)
    return Attempt("ok", package.reached, None, value)
