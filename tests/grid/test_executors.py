import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from mutkv.errors import IncompleteError
from mutkv.grid.executors import InProcess, Processes

from . import executor_tasks as work

TESTS = Path(__file__).parents[1]

pytestmark = pytest.mark.timeout(30)  # a supervisor's typical fault is to wait for ever


def processes(function: Callable, jobs: int = 1, split=work.whole, initializer=None) -> Processes:
    return Processes(function, jobs, split, work.abandon, initializer)


def gone(pids: list[int], within: float = 2.0) -> bool:
    """Whether the processes end in time; one that nobody reaps (its parent was killed) counts as ended."""
    end = time.monotonic() + within
    while any(map(_running, pids)):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def worker_pids(parent: int | None = None) -> list[int]:
    """The workers of a process (this one), also those that ended and were not reaped, which have no command line."""
    children = psutil.Process(parent).children()
    return [child.pid for child in children if not (line := child.cmdline()) or "spawn_main" in " ".join(line)]


@pytest.fixture(autouse=True)
def _nothing_is_left_behind():
    """Every test ends with no worker and no zombie, by its own doing (`children` still lists what nobody reaped)."""
    yield
    for child in parents:
        child.kill()
    parents.clear()
    assert worker_pids() == []


# --- in process


def test_in_process_does_tasks_in_order_and_only_when_asked():
    taken = []
    with InProcess(work.double) as executor:
        results = executor.run(taken.append(n) or n for n in (3, 1, 2))
        assert next(results) == (3, 6)
        assert taken == [3]
        assert list(results) == [(1, 2), (2, 4)]


# --- the plain path


def test_every_task_comes_back_with_its_own_result():
    with processes(work.double, jobs=2) as executor:
        assert sorted(executor.run(range(50))) == [(n, 2 * n) for n in range(50)]


def test_no_tasks_start_no_workers():
    with processes(work.double) as executor:
        assert list(executor.run([])) == []
        assert worker_pids() == []


def test_tasks_are_taken_from_the_iterable_only_as_workers_get_free():
    taken = []
    with processes(work.double) as executor, closing(executor.run(taken.append(n) or n for n in range(9))) as results:
        next(results)
        assert len(taken) == 2  # the one that is done, and the one the worker does meanwhile


def test_results_come_in_the_order_of_completion():
    with processes(work.process, jobs=2) as executor:
        executor.start()
        assert [task for task, _ in executor.run([0.4, 0.0, 0.0])] == [0.0, 0.0, 0.4]


def test_tasks_and_results_larger_than_a_pipe_pass():
    with processes(work.backwards, jobs=2) as executor:
        assert all(result == task[::-1] for task, result in executor.run([b"ab" * 4_000_000] * 3))


def test_started_workers_are_up_initialized_and_kept_for_several_runs():
    with processes(work.environment, jobs=2, initializer=work.initialize) as executor:
        began = time.monotonic()
        executor.start()
        assert time.monotonic() - began > 0.3
        pids = worker_pids()
        assert len(pids) == 2
        for _ in range(2):
            assert list(executor.run(["INITIALIZED"] * 3)) == [("INITIALIZED", "yes")] * 3
        assert worker_pids() == pids
    assert gone(pids, within=0)


def test_workers_have_one_openmp_thread_and_the_parent_keeps_its_own(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    with processes(work.environment) as executor:
        assert list(executor.run(["OMP_NUM_THREADS"])) == [("OMP_NUM_THREADS", "1")]
        assert os.environ["OMP_NUM_THREADS"] == "5"
    monkeypatch.delenv("OMP_NUM_THREADS")
    with processes(work.environment) as executor:
        executor.start()
        assert "OMP_NUM_THREADS" not in os.environ


def test_the_executor_itself_makes_no_worker_import_torch():
    with processes(work.has_module) as executor:
        assert list(executor.run(["torch"])) == [("torch", False)]


def test_fewer_than_one_job_is_refused():
    with pytest.raises(ValueError, match="jobs"):
        processes(work.double, jobs=0)


# --- workers that die


@pytest.mark.parametrize(
    ("how", "ending"), [("exit", "exit code 3"), ("SIGKILL", "signal 9 (Killed)"), ("SIGSEGV", "signal 11")]
)
def test_a_task_that_always_kills_its_worker_is_given_up_and_all_others_are_done(how, ending):
    tasks = [("a",), (f"die:{how}",), ("b",), ("c",)]
    with processes(work.perform, split=work.halves) as executor:
        results = dict(executor.run(tasks))
    reason = results.pop(tasks[1])
    assert reason.startswith("gave up: it ended its worker process 2 times: ")
    assert ending in reason
    assert results == {("a",): "a", ("b",): "b", ("c",): "c"}


def test_a_task_that_kills_its_worker_once_is_done_in_a_fresh_one(tmp_path):
    task = (f"once:SIGKILL:{tmp_path / 'marker'}",)
    with processes(work.perform, jobs=2, split=work.halves) as executor:
        executor.start()
        assert list(executor.run([task])) == [(task, task[0])]
        assert len(worker_pids()) == 2  # the survivor had nothing to do, and yet was not asked


def test_only_the_deadly_piece_of_a_group_is_lost():
    with processes(work.perform, jobs=2, split=work.halves) as executor:
        results = dict(executor.run([("a", "b", "die:exit", "c"), ("d", "e")]))
    assert "gave up" in results.pop(("die:exit",))
    assert results == {("a", "b"): "a+b", ("c",): "c", ("d", "e"): "d+e"}


def test_a_worker_that_died_idle_is_replaced_and_no_task_blamed():
    blamed: list[float] = []
    with processes(work.process, split=lambda task: blamed.append(task) or [task]) as executor:
        [(_, pid)] = executor.run([0])
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        [(_, other)] = executor.run([0])
        assert other != pid
    assert blamed == []


# --- exceptions


@pytest.mark.parametrize(
    ("kind", "expected", "text"),
    [("lookup", LookupError, "no lookup"), ("os", FileNotFoundError, "no such file"), ("fatal", work.Fatal, "time")],
)
def test_an_exception_keeps_its_type_brings_the_workers_traceback_and_ends_all_workers(kind, expected, text):
    executor = processes(work.fail, jobs=2)
    executor.start()
    pids = worker_pids()
    with pytest.raises(expected, match=text) as caught:
        list(executor.run(["sleep", kind]))
    assert type(caught.value) is expected
    assert "executor_tasks.py" in caught.value.__notes__[0]
    assert gone(pids, within=0)


def test_an_exception_that_cannot_be_pickled_becomes_a_runtime_error_with_its_text():
    with processes(work.fail) as executor, pytest.raises(RuntimeError, match="OddError: left and right") as caught:
        list(executor.run(["odd"]))
    assert "executor_tasks.py" in caught.value.__notes__[0]


def test_a_result_that_cannot_be_pickled_raises_instead_of_hanging():
    with processes(work.fail) as executor, pytest.raises((pickle.PicklingError, AttributeError)) as caught:
        list(executor.run(["lambda"]))
    assert "In a worker process" in caught.value.__notes__[0]


def test_a_task_that_cannot_be_pickled_raises_instead_of_hanging():
    with processes(work.double) as executor, pytest.raises((pickle.PicklingError, AttributeError)):
        list(executor.run([1, lambda: None]))


def test_a_function_that_cannot_be_pickled_is_refused_before_anything_starts():
    with pytest.raises((pickle.PicklingError, AttributeError)):
        processes(lambda task: task)


def test_an_exception_of_the_initializer_is_raised():
    with processes(work.double, initializer=work.refuse) as executor, pytest.raises(OSError, match="no device"):
        executor.start()


def test_workers_that_die_while_starting_are_an_error_and_not_tried_for_ever():
    with processes(work.double, jobs=2, initializer=work.die_now) as executor:
        with pytest.raises(IncompleteError, match=r"while starting \(exit code 7\)"):
            list(executor.run(range(9)))
        with pytest.raises(IncompleteError, match=r"while starting \(exit code 7\)"):
            executor.start()


# --- the end


def test_closing_the_results_early_ends_busy_and_idle_workers_at_once():
    executor = processes(work.process, jobs=2)
    executor.start()
    pids = worker_pids()
    results = executor.run([0, 30])
    next(results)
    began = time.monotonic()
    results.close()
    assert time.monotonic() - began < 1.5
    assert len(pids) == 2
    assert gone(pids, within=0)


def test_an_error_of_the_caller_ends_the_workers():
    def careless() -> None:
        with processes(work.process, jobs=2) as executor:
            executor.start()
            for _ in executor.run([0, 30]):
                raise LookupError

    with pytest.raises(LookupError):
        careless()
    assert worker_pids() == []


def test_an_executor_works_again_after_it_was_closed():
    with processes(work.double) as executor:
        for _ in range(2):
            assert list(executor.run([4])) == [(4, 8)]
            executor.close()


def test_a_run_whose_executor_was_closed_raises_instead_of_missing_tasks():
    with processes(work.double) as executor:
        results = executor.run(range(9))
        next(results)
        executor.close()
        with pytest.raises(RuntimeError, match="closed"):
            list(results)


def test_a_second_run_beside_the_first_is_refused():
    with processes(work.double) as executor, closing(executor.run(range(9))) as results:
        next(results)
        with pytest.raises(RuntimeError, match="has not ended"):
            next(executor.run([1]))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files by /proc")
def test_runs_and_losses_leave_no_open_files():
    def once() -> int:
        with processes(work.perform) as executor:
            list(executor.run([("die:exit",)]))
        return len(os.listdir("/proc/self/fd"))

    assert once() == once()  # the first opens multiprocessing's own resource tracker


# --- other processes as parents


parents: list[subprocess.Popen[str]] = []


def python(*arguments: str, source: str = "", **options) -> subprocess.Popen[str]:
    env = os.environ | {"PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen([sys.executable, "-W", "error", *arguments], env=env, text=True, **pipes, **options)
    parents.append(child)
    child.stdin.write(source)
    child.stdin.close()
    child.stdin = None
    return child


PARENT = """
import time
from grid import executor_tasks as work
from mutkv.grid.executors import Processes

FILE = globals().get("__file__")

def main():
    with Processes(work.{function}, 2, work.whole, work.abandon) as executor:
        executor.start()
        for task, result in executor.run({tasks}):
            print(result, flush=True)
    assert globals().get("__file__") == FILE

{guard}
    main()
"""
GUARD = 'if __name__ == "__main__":'


def parent(function: str, tasks: str, guard: str = GUARD) -> str:
    return PARENT.format(function=function, tasks=tasks, guard=guard)


@pytest.mark.parametrize("form", ["script", "-c", "stdin"])
def test_workers_start_whatever_the_main_module_is(form, tmp_path):
    source, script = parent("double", "[1, 2, 3]"), tmp_path / "script.py"
    script.write_text(source)
    arguments = {"script": [str(script)], "-c": ["-c", source], "stdin": ["-"]}[form]
    out, err = python(*arguments, source=source if form == "stdin" else "").communicate(timeout=20)
    assert err == ""
    assert sorted(out.split()) == ["2", "4", "6"]


def test_a_function_defined_on_the_command_line_is_an_error_that_names_it():
    source = parent("double", "[1]").replace("work.double", "mine").replace("def main", "def mine(n): pass\ndef main")
    out, err = python("-c", source).communicate(timeout=20)
    assert out == ""
    assert "AttributeError: Can't get attribute 'mine'" in err


def test_a_script_without_its_guard_ends_with_a_hint(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(parent("double", "[1]", guard="if True:"))
    out, err = python(str(script)).communicate(timeout=20)
    assert out == ""
    assert "a script that starts workers needs an `if __name__" in err.splitlines()[-1]


def workers_of(child: subprocess.Popen[str]) -> list[int]:
    """The two workers of a parent, as soon as something was printed."""
    assert child.stdout is not None
    assert child.stdout.readline()
    while len(pids := worker_pids(child.pid)) < 2:
        time.sleep(0.01)
    return pids


def interrupt(child: subprocess.Popen[str]) -> str:
    """Press Ctrl-C at the terminal of a process and its workers; return what they say."""
    os.killpg(child.pid, signal.SIGINT)
    return child.communicate(timeout=5)[1]


def test_ctrl_c_ends_parent_and_workers_quickly_with_one_traceback():
    child = python("-c", parent("process", "[0, 30]"), start_new_session=True)
    pids = workers_of(child)
    said = interrupt(child)
    assert gone(pids, within=0)
    assert said.count("Traceback") == 1
    assert said.splitlines()[-1] == "KeyboardInterrupt"


def test_workers_are_deaf_to_ctrl_c_from_their_first_moment(tmp_path):
    script, slow_start = tmp_path / "script.py", "    print('starting', flush=True)\n    time.sleep(0.3)\n"
    script.write_text(parent("double", "[1]") + 'if __name__ == "__mp_main__":\n' + slow_start)
    child = python(str(script))
    for pid in workers_of(child):
        os.kill(pid, signal.SIGINT)  # to them alone: the parent would end them before they can complain
    out, err = child.communicate(timeout=10)
    assert err == ""
    assert out.splitlines()[-1] == "2"


def test_workers_of_a_killed_parent_exit_by_themselves_busy_or_idle():
    child = python("-c", parent("process", "[0, 30]"))
    pids = workers_of(child)
    child.kill()
    child.communicate(timeout=5)
    assert gone(pids)


def test_workers_that_nobody_closed_end_with_their_parent():
    source = parent("double", "[1]").replace("def main():", "def main():\n    global executor")  # kept to the very end
    source = source.replace("with Processes", "for executor in [Processes").replace(" as executor:", "]:")
    child = python("-c", source + "    time.sleep(0.2)")
    pids = workers_of(child)
    assert child.communicate(timeout=5) == ("", "")
    assert gone(pids, within=0)
