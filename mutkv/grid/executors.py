"""Who does the tasks of a grid: this process, or spawned ones of which any may die without taking the grid along."""

import pickle
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Generic, Protocol, Self, TypeVar

from mutkv.errors import IncompleteError
from mutkv.grid.worker import Attempt, Worker, answered

T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_MAX_LOSSES = 2  # one loss may be bad luck (memory, a machine's hiccup), two are the task's doing


class Executor(Protocol[T, R_co]):
    """Does tasks; used in a ``with`` block, which frees whatever it holds."""

    def run(self, tasks: Iterable[T]) -> Iterator[tuple[T, R_co]]:
        """Take tasks one at a time and yield each with its result, in the order of completion."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class InProcess(Generic[T, R]):
    """Does tasks here, one after another."""

    def __init__(self, function: Callable[[T], R]) -> None:
        self._function = function

    def run(self, tasks: Iterable[T]) -> Generator[tuple[T, R], None, None]:
        """Yield each task with its result, in the order given."""
        for task in tasks:
            yield task, self._function(task)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Hold nothing, free nothing."""


class Processes(Generic[T, R]):
    """Does tasks in spawned processes, one task at a time each; they start when needed and last until `close`.

    ``function`` and ``initializer`` must be importable by name. Spawn imports ``__main__`` again, so a script needs its
    ``if __name__ == "__main__":`` guard; it cannot import ``python -c``, standard input or a notebook, and a function
    defined there raises AttributeError. Workers have OMP_NUM_THREADS=1, ignore Ctrl-C, exit when this process is gone,
    and are daemons: they cannot start multiprocessing processes of their own.
    """

    def __init__(
        self,
        function: Callable[[T], R],
        jobs: int,
        split: Callable[[T], list[T]],
        give_up: Callable[[T, str], R],
        initializer: Callable[[], object] | None = None,
    ) -> None:
        """Prepare for ``jobs`` workers without starting one.

        Args:
            function: Does one task, in a worker.
            jobs: The number of workers, at least 1.
            split: Cuts a task that cost a worker into smaller ones; ``[task]`` if there are none.
            give_up: The result of a task that cost two workers and cannot be split, given how the last one ended.
            initializer: Runs once in each worker before its first task.
        """
        if jobs < 1:
            raise ValueError(f"jobs must be at least 1, not {jobs}")
        self._job = pickle.dumps((function, initializer))
        self._jobs, self._split, self._give_up = jobs, split, give_up
        self._workers: list[Worker[T]] = []

    def start(self) -> None:
        """Start all workers and return when every one has run the initializer.

        Raises:
            IncompleteError: A worker died while starting.
        """
        self._bury_idle()
        try:
            while len(self._workers) < self._jobs:
                self._launch()
            while starting := [worker for worker in self._workers if not worker.ready]:
                for worker in answered(starting):
                    self._hear(worker, deque())
        except BaseException:
            self.close()
            raise

    def run(self, tasks: Iterable[T]) -> Generator[tuple[T, R], None, None]:
        """Yield each task with its result as they complete; in place of a task that was split, its pieces.

        An exception of ``function`` is raised here with the worker's traceback as a note. It ends all workers, as does
        one raised here by Ctrl-C, and as does the caller who closes this generator early.

        Raises:
            IncompleteError: A worker died while starting.
            RuntimeError: Another `run` has not ended, or the executor was closed during this one.
        """
        if any(worker.attempt for worker in self._workers):
            raise RuntimeError("another run() of this executor has not ended")
        self._bury_idle()
        try:
            yield from self._supervise(map(Attempt, tasks))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all workers; a later `run` starts new ones."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.dismiss()
        for worker in workers:
            worker.reap()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _supervise(self, fresh: Iterator[Attempt[T]]) -> Iterator[tuple[T, R]]:
        workers, retries = self._workers, deque[Attempt[T]]()
        done: list[tuple[T, R]] = []
        while True:
            self._dispatch(fresh, retries)
            yield from done  # after dispatching, so that no worker waits for the caller
            if workers is not self._workers:
                raise RuntimeError("the executor was closed during run()")
            busy = [worker for worker in workers if worker.attempt]
            if not busy:
                return
            done = [pair for worker in answered(busy) for pair in self._hear(worker, retries)]

    def _dispatch(self, fresh: Iterator[Attempt[T]], retries: deque[Attempt[T]]) -> None:
        idle = [worker for worker in self._workers if not worker.attempt]
        while idle or len(self._workers) < self._jobs:
            again = bool(retries)
            attempt = retries.popleft() if again else next(fresh, None)
            if attempt is None:
                return
            # a retry gets a new process if it can: what an old one has piled up may be what killed the last
            renew = again and len(self._workers) < self._jobs
            worker = idle.pop() if idle and not renew else self._launch()
            worker.assign(attempt)

    def _hear(self, worker: Worker[T], retries: deque[Attempt[T]]) -> list[tuple[T, R]]:
        """Act on a worker's answer or death; return the task that ended by it, if any, with its result."""
        answer, attempt = worker.receive(), worker.attempt
        if answer is None:
            return self._lose(worker, retries)
        if not answer.succeeded:
            raise answer.value
        if not worker.ready:
            worker.ready = True
            if attempt:
                worker.assign(attempt)
            return []
        assert attempt is not None, "a worker answers only its start and its tasks"
        worker.attempt = None
        return [(attempt.task, answer.value)]

    def _lose(self, worker: Worker[T], retries: deque[Attempt[T]]) -> list[tuple[T, R]]:
        self._workers.remove(worker)
        ending = worker.reap()
        if not worker.ready:
            raise IncompleteError(
                f"a worker process died while starting ({ending}): use fewer jobs if memory is short; "
                "a script that starts workers needs an `if __name__ == '__main__':` guard"
            )
        assert worker.attempt is not None, "only workers with a task are listened to"
        task, losses = worker.attempt.task, worker.attempt.losses + 1
        pieces = self._split(task)
        if len(pieces) > 1:
            retries.extend(map(Attempt, pieces))
        elif losses < _MAX_LOSSES:
            retries.append(Attempt(task, losses))
        else:
            return [(task, self._give_up(task, f"it ended its worker process {losses} times: {ending}"))]
        return []

    def _launch(self) -> Worker[T]:
        worker: Worker[T] = Worker(self._job)
        self._workers.append(worker)
        return worker

    def _bury_idle(self) -> None:
        """Forget workers that died with nothing to do, so that no task is blamed for it."""
        for worker in [worker for worker in self._workers if not worker.alive]:
            self._workers.remove(worker)
            worker.reap()
