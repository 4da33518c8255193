"""Runs with several tables and a figure: what is on the screen, in the CSV, in the JSON and in the folder."""

import csv
import io
import os
import shutil

import pytest

from mutkv.grid.results import load
from mutkv.report.summary import summary

from .command import content, run_line, write_mutant

ROUNDING = """
name = "small"
summary = "made by a test"
table = "rounding"
[axes]
head_dim = 4
vocab = 8
prompt_length = 3
steps = 3
storage = ["float32", "bfloat16"]
accumulator = ["float64", "bfloat16"]
[[variants]]
seed = [0, 1]
[[variants]]
seed = [0, 1, 2, 3]
decode_order = "pairwise"
"""
STUDY = """
name = "layers"
summary = "made by a test"
study = "causality"
mutants = ["prerot"]
benign = ["clean"]
[axes]
head_dim = 4
vocab = 8
steps = 3
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    (folder / "small.toml").write_text(ROUNDING)
    (folder / "layers.toml").write_text(STUDY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run_line(patch, "grid run small.toml") == 0
        assert run_line(patch, "grid run layers.toml") == 0
    return folder


@pytest.fixture
def folder(whole, tmp_path, monkeypatch):
    copy = shutil.copytree(whole, tmp_path / "copy")
    monkeypatch.chdir(copy)
    return copy


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_the_screen_has_every_table_under_its_name_but_the_data(folder, mutkv):
    out = mutkv("grid show results/small").out
    assert out.startswith("small: 48 cases planned, 48 done, 0 failed, 0 missing\n")
    assert "equal %" in out
    assert "\nruns:\n" in out
    assert "\nflips:" not in out
    assert out.endswith("more tables: flips (mutkv grid show results/small --table NAME)\n")


def test_csv_is_the_first_table_and_any_other_by_its_name(folder, mutkv):
    tables = summary(load("results/small"))
    assert list(tables) == ["agreement", "runs", "flips"]
    assert list(rows(mutkv("grid show results/small --csv").out)[0]) == list(tables["agreement"])
    for name, frame in tables.items():
        found = rows(mutkv(f"grid show results/small --csv --table {name}").out)
        assert (list(found[0]), len(found)) == (list(frame), len(frame))


def test_json_has_all_tables_of_the_screen_or_the_one_that_is_named(folder, mutkv):
    whole = mutkv("grid show results/small --json").json
    assert (whole["scenario"], whole["table"], list(whole["tables"])) == ("small", "agreement", ["runs"])
    assert (len(whole["rows"]), len(whole["tables"]["runs"])) == (4, 8)
    named = mutkv("grid show results/small --json --table flips").json
    assert named["table"] == "flips"
    assert {row["comparison"] for row in named["rows"]} == {
        "cached, one order",
        "cached, two orders",
        "no cache, two orders",
    }


def test_a_table_that_there_is_not_is_answered_with_the_nearest(folder, mutkv):
    done = mutkv("grid show results/small --table flip")
    assert (done.code, done.line) == (2, "unknown table 'flip': did you mean flips?")


def test_a_run_draws_its_figure_once_it_is_complete_and_always_the_same(folder, mutkv):
    before = content("results/small/figures")
    assert [path.name for path in sorted(before)] == ["small.png", "small.svg"]
    shutil.rmtree("results/small/figures")
    done = mutkv("grid run small.toml")
    assert done.err.splitlines()[-1] == ("figure: results/small/figures/small.svg and results/small/figures/small.png")
    assert content("results/small/figures") == before


def test_a_run_without_a_figure_makes_no_folder_for_it(folder):
    assert not (folder / "results/layers/figures").exists()


def test_what_is_incomplete_is_not_drawn(folder, mutkv, monkeypatch):
    shutil.rmtree("results/small/figures")
    monkeypatch.setattr("mutkv.cli.grid.execute", lambda run, jobs: None)
    for path in (folder / "results/small/cases").glob("*.parquet"):
        path.unlink()
        break
    assert mutkv("grid run small.toml").code == 3
    assert not (folder / "results/small/figures").exists()


def test_a_failed_case_is_a_result_and_the_rest_is_drawn(folder, mutkv):
    shutil.rmtree("results/small/figures")
    write_mutant(folder / "mine", id="raises")
    (folder / "mine/raises.toml").write_text(
        (folder / "mine/raises.toml").read_text().replace("self.length // 2", "1 // 0")
    )
    assert mutkv("grid run small.toml --mutants mine").code == 0
    assert load("results/small").completeness.failed == 24
    assert (folder / "results/small/figures/small.svg").exists()


def test_a_run_with_nothing_to_draw_ends_well(folder, mutkv):
    (folder / "plain.toml").write_text(ROUNDING.replace('name = "small"', 'name = "plain"').split("[[variants]]")[0])
    done = mutkv("grid run plain.toml")
    assert (done.code, "figure" in done.err) == (0, False)


def test_a_figure_that_cannot_be_written_is_a_warning_and_the_run_is_right(folder, mutkv):
    shutil.rmtree("results/small/figures")
    (folder / "results/small/figures").write_text("in the way")
    done = mutkv("grid run small.toml")
    assert done.code == os.EX_OK
    assert "mutkv: warning: no figure: results/small/figures/small.svg: cannot be written" in done.err


def test_a_study_is_printed_by_layer_and_refused_by_score(folder, mutkv):
    [first, *_] = rows(mutkv("grid show results/layers --csv").out)
    assert (first["mutant"], first["layer"], first["append: keys"]) == ("prerot", "1", "0.0")
    done = mutkv("score results/layers")
    assert done.code == 2
    assert done.line == (
        "results/layers: a study has no observations to judge: 'mutkv grid show results/layers' prints what it measured"
    )
