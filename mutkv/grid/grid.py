"""Running a plan into a folder: plan first, then group after group, each written as soon as it is done.

What is recorded is never computed again; the caller sees every finished group and may stop at any time.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import pandas as pd

from mutkv.errors import UsageError
from mutkv.grid.executors import Executor, InProcess, Processes
from mutkv.grid.files import check_version, read_json, replacing, write_json
from mutkv.grid.manifest import make_manifest
from mutkv.grid.measure import measure_group
from mutkv.grid.plan import Group, Plan
from mutkv.grid.records import Records, records
from mutkv.grid.run import Outcome, run_group
from mutkv.grid.store import recorded_keys, remove_part, set_aside, write_part
from mutkv.mutation.mutant import Mutant

TIMINGS = "timings.parquet"


@dataclass(frozen=True, slots=True)
class Task:
    """One group to run, and all that a worker needs for it."""

    group: Group
    mutants: Mapping[str, Mutant]
    scenario: str
    device: str
    folder: Path
    study: str | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """One group that is recorded: how many cases had which outcome, and how long it took."""

    part: str
    outcomes: Mapping[str, int]
    seconds: float


@dataclass(frozen=True)
class Run:
    """A plan on a folder, with what of it is still to do."""

    plan: Plan
    folder: Path
    pending: tuple[Group, ...]

    @property
    def todo(self) -> int:
        """Cases that are not recorded yet."""
        return sum(len(group.cases) for group in self.pending)

    def execute(self, executor: Executor[Task, Finished]) -> Iterator[Finished]:
        """Run what is pending; yield each group once it is on disk."""
        tasks = [self._task(group) for group in sorted(self.pending, key=cost, reverse=True)]
        finished = []
        try:
            for _, done in executor.run(tasks):
                finished.append(done)
                yield done
        finally:
            write_timings(self.folder, finished)

    def _task(self, group: Group) -> Task:
        names = {case.mutant for case in group.cases}
        mutants = {name: mutant for name, mutant in self.plan.mutants.items() if name in names}
        scenario = self.plan.scenario
        return Task(group, mutants, scenario.name, self.plan.device, self.folder, scenario.study)


def prepare(plan: Plan, folder: Path, jobs: int) -> Run:
    """Write plan and manifest, set damaged parts aside, and find out what is to do."""
    check_version(folder)
    done, unreadable = recorded_keys(folder)
    set_aside(folder, unreadable)
    run = Run(plan, folder, plan.pending(done))
    write_json(folder / "plan.json", plan.document())
    if run.pending or not has_manifest(folder):  # else it goes on saying what made the rows
        write_json(folder / "manifest.json", make_manifest(plan, jobs), indent=1)
    return run


def has_manifest(folder: Path) -> bool:
    """Whether a folder has a manifest that can be read."""
    try:
        return bool(read_json(folder / "manifest.json", ["dataset_version"]))
    except UsageError:
        return False


def executor_for(jobs: int) -> Executor[Task, Finished]:
    """Return what carries out tasks: this process, or ``jobs`` spawned ones."""
    if jobs == 1:
        return InProcess(run_task)
    return Processes(run_task, jobs, split_task, give_up)


def run_task(task: Task) -> Finished:
    """Run one group and record it."""
    start = perf_counter()
    with redirect_stdout(sys.stderr):  # what a mutant prints is no result
        if task.study is not None:
            return record(task, list(measure_group(task.group, task.mutants, task.device, task.study)), start)
        outcomes = run_group(task.group, task.mutants, task.device)
        return record(task, [records(outcome, task.device) for outcome in outcomes], start)


def record(task: Task, rows: list[Records], start: float) -> Finished:
    """Write a group's rows as one part."""
    write_part(task.folder, task.group.key, task.scenario, rows, task.group.configuration.vocab)
    counts = Counter(status for part in rows for status in part.cases["outcome"])
    return Finished(task.group.key, counts, perf_counter() - start)


def split_task(task: Task) -> list[Task]:
    """Cut a task that cost its worker: by mutant, then by seed.

    The worker may have died after it recorded the whole; the pieces' parts must not double those rows.
    """
    remove_part(task.folder, task.group.key)
    cases = task.group.cases
    mutants = {case.mutant for case in cases}
    keys = [case.mutant if len(mutants) > 1 else case.case_id for case in cases]
    pieces = [tuple(c for c, key in zip(cases, keys, strict=True) if key == k) for k in dict.fromkeys(keys)]
    return [replace(task, group=replace(task.group, cases=piece)) for piece in pieces]


def give_up(task: Task, reason: str) -> Finished:
    """Record the one case of a task that cost two workers as crashed."""
    case = task.group.cases[0]
    outcome = Outcome(task.group.cases, None, task.mutants.get(case.mutant), "crashed", f"worker lost: {reason}")
    return record(task, [records(outcome, task.device)], perf_counter())


def cost(group: Group) -> int:
    """Return a rough measure of a group's run time, to start long ones first."""
    configuration = group.configuration
    return len(group.cases) * configuration.depth * configuration.tokens * configuration.heads


def write_timings(folder: Path, finished: list[Finished]) -> None:
    """Add the seconds of finished groups to the timings, which are no part of the results."""
    if not finished:
        return
    path = folder / TIMINGS
    rows = [{"part": done.part, "cases": sum(done.outcomes.values()), "seconds": done.seconds} for done in finished]
    frame = pd.DataFrame(rows)
    if path.exists():
        with suppress(OSError, ValueError):  # a damaged file of times is not worth an error
            frame = pd.concat([pd.read_parquet(path), frame], ignore_index=True)
    with replacing(path) as temporary:
        frame.to_parquet(temporary, index=False)
