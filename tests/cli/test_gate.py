"""Exit codes 0 and 1: a complete run and score, and a recall below what was asked for."""

import shlex

import pytest

from .command import MUTANTS

ONE_STEP = 2 / 3
"""Recall of one-step on the tiny dataset: posfrozen is never seen after one token, stale and tril always are."""


def test_a_complete_run_and_its_score_leave_by_0_and_say_nothing_on_stderr(here, mutkv):
    for line in ("grid run tiny.toml --out fresh", "grid status fresh", "grid show fresh", "score fresh"):
        done = mutkv(line)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith("tiny: 20 cases planned, 20 done, 0 failed, 0 missing\n")


@pytest.mark.parametrize(
    ("option", "limit", "code"),
    [("--fail-under", 0.66, 0), ("--fail-under", 0.67, 1), ("--fail-under-low", 0, 0), ("--fail-under-low", 0.01, 1)],
)
def test_recall_below_the_threshold_is_exit_1_and_one_line_with_both_figures(here, mutkv, option, limit, code):
    done = mutkv(f"score --detector one-step {option} {limit} --json")
    assert done.code == code
    assert done.json["detectors"][0]["recall"] == {"value": pytest.approx(ONE_STEP), "low": 0.0, "high": 1.0}
    what = "recall 0.667" if option == "--fail-under" else "lower bound 0.000"
    expected = f"mutkv: detector 'one-step': {what}, asked for at least {limit}\n"
    assert done.err == (expected if code else "")


def test_an_equal_recall_is_not_below(here, mutkv):
    assert mutkv("score --detector every-step --fail-under 1 --fail-under-low 1").code == 0
    assert mutkv(f"score --detector one-step --fail-under {ONE_STEP!r}").code == 0


def test_every_named_detector_below_the_threshold_has_its_line(here, mutkv):
    done = mutkv("score --detector prefill --detector every-step --detector one-step --fail-under 0.9")
    assert done.code == 1
    assert [line.split("'")[1] for line in done.err.splitlines()] == ["prefill", "one-step"]


def test_a_detector_that_is_named_twice_is_scored_once(here, mutkv):
    done = mutkv("score --json --detector one-step --detector one-step")
    assert [detector["name"] for detector in done.json["detectors"]] == ["one-step"]


def test_with_no_arguments_the_source_table_is_run_and_the_command_it_names_gives_the_headline(
    tmp_path, monkeypatch, mutkv
):
    monkeypatch.chdir(tmp_path)
    done = mutkv("grid run")
    assert (done.code, done.err) == (0, "")
    title, *_, blank, following = done.out.splitlines()
    assert title == "detectors: 240 cases planned, 240 done, 0 failed, 0 missing"
    assert blank == ""
    rows = [line.split() for line in done.out.splitlines()[4:14]]
    names = ["stale", "posoff", "freeze", "evict", "posfrozen", "poszero", "tril", "prerot", "clean", "control"]
    assert [row[:2] for row in rows] == [[name, "24"] for name in names]
    assert {row[0] for row in rows if row[2] == "0.0"} == {"freeze", "evict", "posfrozen", "clean"}
    assert following.startswith("next: mutkv score ")
    score = mutkv([*shlex.split(following)[2:], "--json"])
    assert score.code == 0
    recall = {detector["name"]: detector["recall"]["value"] for detector in score.json["detectors"]}
    assert recall == {"every-step": 1.0, "one-step": 0.625}
    assert all(detector["fpr"]["clean"]["value"] == 0.0 for detector in score.json["detectors"])


def test_the_next_command_is_named_below_the_table_alone(here, mutkv):
    assert "next: mutkv score results/tiny " in mutkv("grid show").out
    for style in ("--json", "--csv"):
        assert "next:" not in mutkv(f"grid show {style}").out


def test_the_next_command_is_exact_for_a_folder_with_a_blank_in_its_name(here, mutkv):
    done = mutkv(["grid", "run", "tiny.toml", "--out", "my results"])
    following = done.out.splitlines()[-1].removeprefix("next: mutkv ")
    assert mutkv(following).code == 0


def test_the_rows_of_the_table_are_the_scenarios_mutants_in_its_order_then_clean_and_control(here, mutkv):
    rows = mutkv("grid show --json").json["rows"]
    assert [row["mutant"] for row in rows] == [*MUTANTS, "clean", "control"]
