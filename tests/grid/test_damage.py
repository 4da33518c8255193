"""Damaged, foreign and unwritable folders: one clear line, the right exit code, and nothing that was recorded lost."""

import errno
import json
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mutkv.errors import IncompleteError, UsageError
from mutkv.exit_codes import ExitCode
from mutkv.grid import grid
from mutkv.grid.columns import DATASET_VERSION
from mutkv.grid.results import load

from .small_grids import assert_same_rows, execute, part_bytes, plan_of, scenario_of


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    return plan_of(scenario_of(tmp_path_factory.mktemp("scenario"), mutants=("stale", "freeze")))


@pytest.fixture(scope="module")
def whole(plan, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "out"
    execute(plan, folder)
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    """A copy of the whole dataset, to be damaged."""
    return shutil.copytree(whole, tmp_path / "out")


def parts(folder, kind):
    return sorted((folder / kind).glob("*.parquet"))


def is_one_line(error):
    return "\n" not in str(error.value) and len(str(error.value)) > 20


@pytest.mark.parametrize("kind", ["cases", "observations"])
@pytest.mark.parametrize("left", [0, 3, 0.5, -1])
def test_a_truncated_part_is_missing_then_set_aside_and_run_again(plan, whole, folder, kind, left):
    path = parts(folder, kind)[0]
    data = path.read_bytes()
    path.write_bytes(data[: int(left * len(data)) if isinstance(left, float) else left])
    results = load(folder)
    assert (results.completeness.done, results.completeness.missing) == (8, 8)
    assert results.unreadable == [path.stem]
    assert len(results.observations) == 8 * 9
    damaged = path.read_bytes()
    execute(plan, folder)
    assert part_bytes(folder) == part_bytes(whole)
    assert path.with_suffix(".unreadable").read_bytes() == damaged
    assert load(folder).completeness.missing == 0


def test_observations_without_their_cases_are_not_read_and_their_cases_run_again(plan, whole, folder):
    orphan = parts(folder, "cases")[1]
    orphan.unlink()
    results = load(folder)
    assert (results.completeness.done, results.completeness.missing) == (8, 8)
    assert set(results.observations["case_id"]) == set(results.cases["case_id"])
    assert len(results.observations) == 8 * 9
    assert grid.prepare(plan, folder, 1).todo == 8
    execute(plan, folder)
    assert part_bytes(folder) == part_bytes(whole)


def test_cases_without_their_observations_count_as_missing(plan, whole, folder):
    parts(folder, "observations")[0].unlink()
    assert load(folder).completeness.missing == 8
    execute(plan, folder)
    assert part_bytes(folder) == part_bytes(whole)


def test_temporary_files_of_a_kill_are_never_read(plan, whole, folder):
    for kind in ("cases", "observations"):
        (folder / kind / f".{parts(folder, kind)[0].name}.123.tmp").write_bytes(b"PAR1 half a file")
    assert_same_rows(load(folder), load(whole))
    assert grid.prepare(plan, folder, 1).todo == 0


def test_results_of_another_version_are_refused_and_left_alone(plan, folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["dataset_version"] == DATASET_VERSION
    (folder / "manifest.json").write_text(json.dumps(manifest | {"dataset_version": 999}))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for refuse in (lambda: load(folder), lambda: grid.prepare(plan, folder, 1)):
        with pytest.raises(UsageError, match="results of dataset version 999, this mutkv has") as error:
            refuse()
        assert is_one_line(error)
        assert error.value.exit_code is ExitCode.USAGE == 2
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["manifest.json", "plan.json"])
def test_a_folder_whose_json_is_damaged_or_gone_is_one_clear_line(folder, name):
    (folder / name).write_text("{")
    for _ in range(2):
        with pytest.raises(UsageError, match=rf"{name}: no mutkv results here") as error:
            load(folder)
        assert is_one_line(error)
        (folder / name).unlink(missing_ok=True)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no such results folder"):
        load(tmp_path / "nothing")


def test_a_folder_that_cannot_be_made_is_refused_before_anything_runs(plan, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(UsageError, match=r"cannot be written .*: choose another --out") as error:
        grid.prepare(plan, tmp_path / "file" / "out", 1)
    assert is_one_line(error)
    assert error.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("failing", [1, 2, 3, 4])
def test_a_full_disk_keeps_what_was_recorded_and_the_run_completes_later(
    plan, whole, tmp_path, monkeypatch, number, failing
):
    write, calls = pq.write_table, []

    def full(table, where, **options):
        calls.append(where)
        if len(calls) >= failing:
            if isinstance(where, Path):  # pandas opens the file of times itself
                where.write_bytes(b"half")
            raise OSError(number, "no space")
        write(table, where, **options)

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(IncompleteError, match="the disk is full; what was recorded is kept") as error:
        execute(plan, tmp_path)
    assert is_one_line(error)
    assert error.value.exit_code is ExitCode.INCOMPLETE == 3
    monkeypatch.undo()
    assert load(tmp_path).completeness.done == (8 if failing >= 3 else 0)
    assert not list(tmp_path.rglob("*.tmp"))
    execute(plan, tmp_path)
    assert part_bytes(tmp_path) == part_bytes(whole)


def test_a_write_that_is_refused_in_mid_run_is_a_usage_error_and_keeps_what_was_recorded(plan, tmp_path, monkeypatch):
    execute(plan, tmp_path, groups=1)

    def refused(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(pq, "write_table", refused)
    with pytest.raises(UsageError, match=r"cannot be written .Read-only file system.: choose another --out"):
        execute(plan, tmp_path)
    assert load(tmp_path).completeness.done == 8


def test_a_disk_that_is_really_full_is_reported_the_same_way(plan, whole, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=56k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no right to mount a small disk here")
    try:
        with pytest.raises(IncompleteError, match="the disk is full; what was recorded is kept"):
            execute(plan, disk / "out")
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        execute(plan, disk / "out")
        assert part_bytes(disk / "out") == part_bytes(whole)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
