"""Exit code 3: results are missing, a detector crashed, a gate cannot be decided, the disk is full."""

import errno
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mutkv.grid.results import load

from .command import content, parts, write_scenario

READING = ("grid status", "grid show", "score", "score --json --detector one-step")


@pytest.fixture(params=["deleted", "truncated"])
def damaged(request, here):
    """The tiny dataset without one of its two groups."""
    path = parts("results/tiny")[0]
    if request.param == "deleted":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-10])
    return path


@pytest.mark.parametrize("line", READING)
def test_missing_cases_are_counted_and_leave_by_3(line, damaged, mutkv):
    done = mutkv(line)
    assert done.code == 3
    if "--json" in line:
        assert done.json["completeness"] == {"planned": 20, "done": 10, "failed": 0, "missing": 10}
    else:
        assert done.out.startswith("tiny: 20 cases planned, 10 done, 0 failed, 10 missing\n")
    lines = done.err.splitlines()
    assert all(line.startswith("mutkv: ") for line in lines)
    assert any(f"part {damaged.stem} is truncated or damaged" in line for line in lines) == damaged.exists()
    assert ("mutkv: 10 cases are missing: run scenario tiny again" in lines) == line.startswith("score")


def test_the_next_run_computes_what_is_missing_alone_and_gives_the_same_rows(damaged, template, mutkv):
    done = mutkv("grid run tiny.toml")
    assert done.code == 0
    assert done.err == "10 of 20 cases are recorded in results/tiny, computing the rest\n"
    for kind in ("cases", "observations"):
        whole = {path.name: path.read_bytes() for path in parts(template / "results/tiny", kind)}
        assert {path.name: path.read_bytes() for path in parts("results/tiny", kind)} == whole


def test_a_high_recall_on_a_part_of_the_cases_cannot_pass_a_threshold(damaged, mutkv):
    assert mutkv("score --detector every-step --fail-under 0.5").code == 3


@pytest.mark.parametrize(
    "line", [*READING, "score --csv", "score --by mutant", "score --by mutant --csv --label observable"]
)
def test_results_of_which_nothing_is_recorded_can_be_read(line, here, mutkv):
    shutil.rmtree("results/tiny/cases")
    done = mutkv(line)
    assert done.code == 3
    assert "internal" not in done.err


def test_a_table_split_by_a_column_can_be_read_where_nothing_is_recorded(here, mutkv):
    shutil.rmtree("results/tiny/cases")
    assert mutkv("grid show --by depth").code == 3


def test_a_detector_that_crashes_on_some_cases_is_exit_3_and_one_warning(here, mutkv):
    code = "def picky(case):\n    assert case.config.depth == 1, 'too deep'\n    return 0.0\n"
    (here / "checks.py").write_text(code)
    done = mutkv("score --json --detector checks.py:picky --detector every-step --fail-under 0.5")
    assert done.code == 3
    [detector, other] = done.json["detectors"]
    assert (detector["crashed"], other["crashed"]) == (10, 0)
    warning, below = done.err.splitlines()
    assert warning.startswith("mutkv: warning: detector 'picky' crashed on 10 of 20 cases, first: ")
    assert "too deep" in warning
    assert below == "mutkv: detector 'picky': recall 0.000, asked for at least 0.5"


@pytest.mark.parametrize(("option", "what"), [("--fail-under", "recall"), ("--fail-under-low", "lower bound")])
def test_a_threshold_on_a_recall_that_is_undefined_cannot_be_decided(option, what, here, mutkv):
    write_scenario("unseen.toml", "unseen", ["posfrozen"], "seed = [0, 1]\nhead_dim = 4\nvocab = 8\nsteps = 1\n")
    assert mutkv("grid run unseen.toml").code == 0
    done = mutkv(f"score --detector one-step {option} 0")
    assert done.code == 3
    assert done.line == f"detector 'one-step': {what} n/a, asked for at least 0"
    assert "without a positive case: posfrozen" in done.out
    row = next(line.split() for line in done.out.splitlines() if line.strip().startswith("one-step"))
    assert row[1:3] == ["n/a", "n/a"]
    document = mutkv("score --detector one-step --json")
    assert document.code == 0
    assert document.json["detectors"][0]["recall"] == {"value": None, "low": None, "high": None}
    assert document.json["unscored_mutants"] == ["posfrozen"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_in_mid_run_keeps_what_was_recorded_and_a_later_run_completes_it(
    number, here, mutkv, monkeypatch, template
):
    write, tables = pq.write_table, []

    def full_after_one_group(table, where, **options):
        tables.append(where)
        if len(tables) > 2 and isinstance(where, Path):
            raise OSError(number, "no space")
        write(table, where, **options)

    with monkeypatch.context() as disk:
        disk.setattr(pq, "write_table", full_after_one_group)
        done = mutkv("grid run tiny.toml --out small --json")
    assert (done.code, done.out) == (3, "")
    assert done.line.startswith("small/observations/")
    assert "the disk is full; what was recorded is kept" in done.line
    assert load("small").completeness.done == 10
    kept = content("small/cases")
    assert mutkv("grid run tiny.toml --out small").code == 0
    assert kept.items() <= content("small/cases").items()
    assert [path.read_bytes() for path in parts("small")] == [path.read_bytes() for path in parts("results/tiny")]
