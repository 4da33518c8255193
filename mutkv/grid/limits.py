"""A time limit for one case: a mutant may loop for ever, and a grid must go on past it without losing its process."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType

_AT_ONCE = 1e-6  # a timer of zero seconds would mean "no timer"


class CaseTimeout(BaseException):
    """A case ran out of time.

    Not an ``Exception``: engines may catch those broadly, and a swallowed time limit is none.
    """


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise `CaseTimeout` in the body once it has run for ``seconds`` (wall clock); ``None`` is no limit.

    Works by SIGALRM, hence only in the main thread of a process that has it; elsewhere there is no limit. Python
    raises between two bytecodes: one long native call (a torch operation, a compiled loop) delays it to its end.
    An alarm that was set before and is due sooner stays as it is; a later one goes on when the body has ended.
    """
    if seconds is None or not _can_alarm() or 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= seconds:
        yield
        return

    def expire(signum: int, frame: FrameType | None) -> None:
        raise CaseTimeout(f"no result within {seconds:g} s")

    handler, began = signal.signal(signal.SIGALRM, expire), monotonic()
    delay, interval = signal.setitimer(signal.ITIMER_REAL, max(seconds, _AT_ONCE))
    try:
        yield
    finally:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
        finally:  # an alarm in the very last moment raises above, and must not leave our handler behind
            signal.signal(signal.SIGALRM, handler)
            if delay:
                signal.setitimer(signal.ITIMER_REAL, max(delay - (monotonic() - began), _AT_ONCE), interval)


def _can_alarm() -> bool:
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
