"""Exit code 130: Ctrl-C keeps what is finished, names what is pending, and the same command goes on from there."""

import os
import re
import signal
import time
import uuid
from pathlib import Path

import pytest

from mutkv.grid import grid
from mutkv.grid.results import load

from .command import parts, start, write_scenario

PATIENCE = 120
GROUPS = 30
LARGE = f"seed = {list(range(4))}\ndepth = 2\nprompt_length = {list(range(3, 3 + GROUPS))}\nsteps = 12\n"


def wait_until(happens):
    """Return once something is true; fail if it takes too long."""
    end = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.005)


def processes_with(mark):
    """Return the processes whose environment holds a mark: a command and all that it started, orphans too."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            held = mark.encode() in path.read_bytes()
        except OSError:  # it is gone, or not ours
            continue
        found += [path.parent.name] * held
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes by /proc")
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_what_is_recorded_ends_every_process_and_a_later_run_completes_it(
    jobs, tmp_path, monkeypatch, mutkv
):
    monkeypatch.chdir(tmp_path)
    write_scenario("large.toml", "large", ["posfrozen", "tril"], LARGE)
    command, mark = f"grid run large.toml --jobs {jobs}", uuid.uuid4().hex
    process = start(command, MUTKV_TEST_MARK=mark)
    try:
        wait_until(lambda: parts("results/large") or process.poll() is not None)
        running = processes_with(mark)
        process.send_signal(signal.SIGINT) if jobs == 1 else signal_group(process)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, "")
    assert len(running) >= (1 if jobs == 1 else 3)
    wait_until(lambda: not processes_with(mark))

    results, planned = load("results/large"), GROUPS * 4 * 4
    done = results.completeness.done
    assert 0 < done < results.completeness.planned == planned
    assert len(results.observations) == done * 13
    assert results.unreadable == []
    [line] = err.splitlines()
    start_of_line = rf"mutkv: interrupted: {done} of {planned} cases are recorded in results/large; pending: "
    pending = re.fullmatch(start_of_line + r"(.+) and (\d+) more; the same command goes on from here", line)
    missing = list(results.missing())
    assert pending[1].split(", ") == missing[:3]
    assert int(pending[2]) == len(missing) - 3 == planned - done - 3
    assert mutkv("grid status").code == 3

    finished = mutkv("grid run large.toml")  # the same but for --jobs, which would take seconds to start
    assert finished.code == 0
    assert finished.err == f"{done} of {planned} cases are recorded in results/large, computing the rest\n"
    assert load("results/large").completeness.done == planned


def signal_group(process):
    """Send what Ctrl-C at a terminal sends: SIGINT to the command and to its workers."""
    os.killpg(process.pid, signal.SIGINT)


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_ctrl_c_before_the_last_group_names_the_cases_that_are_pending(here, mutkv, monkeypatch):
    once = iter([grid.run_group, interrupt])
    monkeypatch.setattr(grid, "run_group", lambda *arguments: next(once)(*arguments))
    done = mutkv("grid run tiny.toml --out stopped")
    assert (done.code, done.out) == (130, "")
    assert done.line.startswith("interrupted: 10 of 20 cases are recorded in stopped; pending: ")
    assert done.line.endswith(" and 7 more; the same command goes on from here")


ELSEWHERE = {
    "score": "mutkv.cli.score.judge_all",
    "mutants check tril": "mutkv.grid.check.problems",
    "grid run": "mutkv.grid.plan.content_keys",
}


@pytest.mark.parametrize("line", ELSEWHERE)
def test_ctrl_c_anywhere_else_leaves_by_130_without_a_traceback(line, here, mutkv, monkeypatch):
    monkeypatch.setattr(ELSEWHERE[line], interrupt)
    done = mutkv(line)
    assert (done.code, done.out, done.err.strip()) == (130, "", "mutkv: interrupted")


def test_ctrl_c_anywhere_else_is_exactly_one_line(here, mutkv, monkeypatch):
    monkeypatch.setattr(ELSEWHERE["score"], interrupt)
    assert mutkv("score").line == "interrupted"
