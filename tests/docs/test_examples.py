"""The examples of the pages run: Python, mutants, scenarios and command lines."""

import json
import os
import runpy
import shlex
import sys
import tomllib

import pandas as pd
import pytest

from mutkv.cli.app import cli, run
from mutkv.detectors import Detector
from mutkv.report.render import cell

from .pages import all_blocks, blocks, markdown, text_of

TINY = """
name = "detectors"
summary = "made by a test"
mutants = ["posfrozen", "tril"]
[axes]
seed = [0, 1]
head_dim = 4
vocab = 8
steps = 8
"""
STUDY = """
name = "causality"
summary = "made by a test"
study = "causality"
mutants = ["unmasked"]
[axes]
head_dim = 4
vocab = 8
steps = 2
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with tiny datasets where the pages expect results."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "tiny.toml").write_text(TINY)
        assert mutkv(patch, "grid run tiny.toml --json") == 0
        (folder / "study.toml").write_text(STUDY)
        assert mutkv(patch, "grid run study.toml --json") == 0
        os.utime("results/detectors/plan.json")  # the latest
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return monkeypatch


def mutkv(monkeypatch, line):
    """Run a command line in this process; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["mutkv", *shlex.split(line)])
    return run()


@pytest.mark.parametrize(("page", "code"), all_blocks("python"))
def test_python_of_a_page_runs_and_its_detectors_judge_every_case(page, code, here, folder, capsys):
    (folder / "example.py").write_text(code)
    members = runpy.run_path("example.py", run_name="__main__")
    for name in [name for name, value in members.items() if isinstance(value, Detector)]:
        capsys.readouterr()
        assert mutkv(here, f"score --json --detector example.py:{name}") == 0
        printed = capsys.readouterr()
        [detector] = json.loads(printed.out)["detectors"]
        assert detector["crashed"] == 0
        assert detector["fpr"]["clean"]["value"] == 0.0
        assert not printed.err


def test_the_readme_has_an_offline_and_a_live_detector_and_both_find_a_bug(here, folder, capsys):
    [code] = [code for code in blocks("README.md", "python") if "@mutkv.detector" in code]
    (folder / "my_checks.py").write_text(code)
    [line] = [line for line in commands("README.md") if "my_checks.py" in line]
    capsys.readouterr()
    assert mutkv(here, f"{line} --json --label observable") == 0
    scores = json.loads(capsys.readouterr().out)["detectors"]
    assert [score["name"] for score in scores] == ["third-step", "one-chunk"]
    assert all(score["recall"]["value"] > 0 for score in scores)


@pytest.mark.parametrize(("page", "code"), all_blocks("toml"))
def test_toml_of_a_page_is_a_mutant_that_passes_its_check_or_a_scenario_that_can_be_planned(
    page, code, here, tmp_path, capsys
):
    table = tomllib.loads(code)
    path = tmp_path / "example.toml"
    path.write_text(code)
    line = f"mutants check {table['id']} --mutants {tmp_path}" if "witness" in table else f"grid plan {path}"
    assert mutkv(here, line) == 0, capsys.readouterr()


def test_the_readme_mutant_adds_24_cases_to_the_default_scenario(here, tmp_path, capsys):
    [code] = blocks("README.md", "toml")
    (tmp_path / "halfpos.toml").write_text(code)
    counts = []
    for line in ("grid plan --json", f"grid plan --json --mutants {tmp_path}"):
        capsys.readouterr()
        assert mutkv(here, line) == 0
        counts.append(json.loads(capsys.readouterr().out)["cases"])
    assert counts == [240, 240 + 24]


def commands(page):
    """Return the arguments of all mutkv command lines of a page's shell blocks."""
    lines = [line for code in blocks(page, "sh") for line in code.splitlines()]
    return [line.removeprefix("mutkv ") for line in lines if line.startswith("mutkv ")]


@pytest.mark.parametrize("page", [page for page in markdown() if commands(page)])
def test_command_lines_of_a_page_exist_with_their_options(page, here, folder):
    (folder / "my_mutants").mkdir(exist_ok=True)
    for line in commands(page):
        command, arguments = cli, shlex.split(line)
        while arguments and arguments[0] in getattr(command, "commands", {}):
            command = command.commands[arguments.pop(0)]
        assert not hasattr(command, "commands"), f"{page}: '{line}' is no command"
        command.make_context("mutkv", arguments, resilient_parsing=False)


def reference(name):
    """Return a file of the reference run."""
    return text_of(f"results/reference/{name}")


def test_the_readme_table_of_mutants_is_that_of_the_reference_run():
    [block] = [code for code in blocks("README.md", "text") if "posfrozen" in code]
    printed = [line.split() for line in block.splitlines()]
    frame = pd.read_csv(pd.io.common.StringIO(reference("detectors.csv")))
    for row in frame.itertuples(index=False):
        expected = [cell(name, value) for name, value in zip(frame, row, strict=True)]
        assert expected in printed, f"results/reference has {expected}"


def test_the_readme_table_of_detectors_is_that_of_the_reference_run():
    [block] = [code for code in blocks("README.md", "text") if "posfrozen" in code]
    printed = {words[0]: words[1:] for words in map(str.split, block.splitlines()) if words}
    scores = {score["name"]: score for score in json.loads(reference("detectors-score.json"))["detectors"]}
    for name in ("every-step", "one-step"):
        score = scores[name]
        intervals = [score["recall"], score["recall_cases"], *score["fpr"].values(), score["auc"], score["auc_source"]]
        figures = [f"{interval['value']:.3f}" for interval in intervals]
        assert printed[name] == [*figures, str(score["flagged"]), f"{score['cost_tokens']:.0f}"]
