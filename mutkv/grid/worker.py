"""One worker process and the parent's handle on it.

Apart from the supervisor, so that a worker imports little. Messages are plain pickles, not multiprocessing's own: torch
teaches those to send tensors as handles to memory of the sending process, which is gone when a worker dies.
"""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")
_SPAWN = multiprocessing.get_context("spawn")  # never fork: CUDA and native threads do not survive it
_PATIENCE = 2.0  # seconds that a worker gets to leave by itself


@dataclass(frozen=True)
class Attempt(Generic[T]):
    """A task and how many workers it has cost in this form."""

    task: T
    losses: int = 0


class Answer(NamedTuple):
    """What a worker says after its start and after each task: a value, or the exception that came instead."""

    succeeded: bool
    value: Any


class Worker(Generic[T]):
    """The parent's handle on one process; ``attempt`` is what the process has to do, now or as soon as it is ready."""

    def __init__(self, job: bytes) -> None:
        """Start a process that serves ``job``, the pickle of (function, initializer or None)."""
        self.ready = False
        self.attempt: Attempt[T] | None = None
        self._connection, theirs = _SPAWN.Pipe()
        # daemon: the interpreter ends it at exit, should nobody have closed the executor
        self._process = _SPAWN.Process(target=_serve, args=(theirs, job), daemon=True)
        try:
            with theirs, _surroundings():
                self._process.start()
        except BaseException:  # Ctrl-C right here: nobody else knows this process yet
            self._connection.close()
            if self._process.pid is not None:
                self._process.kill()
                self._process.join()
            raise

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.is_alive()

    def assign(self, attempt: Attempt[T]) -> None:
        """Give the worker its next task."""
        self.attempt = attempt
        if self.ready:
            data = pickle.dumps(attempt.task)
            with suppress(OSError):  # it has just died, and `receive` will say so
                self._connection.send_bytes(data)

    def receive(self) -> Answer | None:
        """Return the answer that `answered` announced, or None if the worker died instead."""
        try:
            if not self._connection.poll():
                return None
            data = self._connection.recv_bytes()
        except (EOFError, OSError):
            return None
        return Answer(*pickle.loads(data))

    def dismiss(self) -> None:
        """Let the process end: an idle one reads the end of its pipe and leaves, any other is killed."""
        self._connection.close()
        if self.attempt is not None or not self.ready:
            self._process.kill()

    def reap(self) -> str:
        """Wait for the end of the process, free all that it held here, and return how it ended."""
        self._process.join(_PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        code = self._process.exitcode or 0
        self._process.close()
        self._connection.close()
        return f"signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit code {code}"

    def handles(self) -> tuple[Connection, int]:
        """Return what becomes readable when the worker answers, and when it dies."""
        return self._connection, self._process.sentinel


def answered(workers: Iterable[Worker[T]]) -> list[Worker[T]]:
    """Wait until at least one worker has answered or died; return all that have."""
    owners = {handle: worker for worker in workers for handle in worker.handles()}
    return list(dict.fromkeys(owners[handle] for handle in wait(list(owners))))  # type: ignore[index]


@contextmanager
def _surroundings() -> Iterator[None]:
    """Arrange what a process inherits: one OpenMP thread, no Ctrl-C, and no main script that cannot be read again."""
    main, threads = vars(sys.modules["__main__"]), os.environ.get("OMP_NUM_THREADS")
    script = main.get("__file__")
    if script is not None and not os.path.exists(script):  # "<stdin>": spawn would try to run a file of that name
        del main["__file__"]
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        with _interrupts_blocked():
            yield
    finally:
        if script is not None:
            main["__file__"] = script
        if threads is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = threads


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Hold Ctrl-C back here; a process started meanwhile never sees it, not even before it can ignore it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else the first start does that, and lets SIGINT through again
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _serve(connection: Connection, job: bytes) -> None:
    """Be a worker: start, say so, then one answer per task until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        try:
            function = _prepare(job)
        except BaseException as error:
            connection.send_bytes(_failure(error))
            return
        connection.send_bytes(pickle.dumps((True, None)))
        while True:
            connection.send_bytes(_answer(function, connection.recv_bytes()))


def _prepare(job: bytes) -> Callable[[Any], Any]:
    function, initializer = pickle.loads(job)
    if initializer is not None:
        initializer()
    return function  # type: ignore[no-any-return]


def _answer(function: Callable[[Any], Any], task: bytes) -> bytes:
    try:
        return pickle.dumps((True, function(pickle.loads(task))))
    except BaseException as error:
        return _failure(error)


def _failure(error: BaseException) -> bytes:
    """Pickle an exception with its traceback as a note; one that does not survive pickling becomes a RuntimeError."""
    text = "".join(traceback.format_exception(error))
    try:
        portable = type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:
        portable = False
    if not portable:
        error = RuntimeError(f"{type(error).__qualname__}: {error}")
    error.add_note(f"In a worker process:\n{text}")
    return pickle.dumps((False, error))


def _exit_with_parent() -> None:
    """End this process as soon as the parent is gone, also in the middle of a long task."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
