"""Invalid input leaves by 2 with one line on stderr that names what is wrong and how to mend it, and no output."""

import json

import pytest

from .command import content, write_mutant

WRONG = {
    "grid run detectrs": "unknown scenario 'detectrs': did you mean detectors",
    "grid plan no.toml": "no.toml: no such file",
    "scenarios show exactnes": "unknown scenario 'exactnes': did you mean exactness",
    "mutants show posfrozn": "unknown mutant 'posfrozn': did you mean posfrozen",
    "mutants check posfrozn": "unknown mutant 'posfrozn': did you mean posfrozen",
    "score --detector one-stp": "unknown detector 'one-stp': did you mean one-step",
    "score --detector checks.py:thrid": "unknown function of checks.py 'thrid': did you mean third",
    "score --detector no.py:check": "no.py: no such file",
    "score --detector checks.py": "names no function",
    "score --by clas": "unknown column 'clas': did you mean class",
    "grid show --by dept": "unknown column 'dept': did you mean depth",
    "score --label changed": "'changed' is not one of 'output-changed', 'observable'",
    "score nowhere": "nowhere: no such results folder",
    "grid status nowhere": "nowhere: no such results folder",
    "grid show nowhere": "nowhere: no such results folder",
    "score tiny.toml": "tiny.toml: no such results folder",
    "score --fail-under 1.5": "--fail-under",
    "score --fail-under-low -0.1": "--fail-under-low",
    "grid run tiny.toml --jobs -1": "--jobs",
    "grid run tiny.toml --jobs 0": "--jobs",
    "grid run tiny.toml --jobs two": "--jobs",
    "grid run tiny.toml --device tpu": "--device",
    "grid run tiny.toml --mutants nowhere": "nowhere",
    "grid run tiny.toml --mutants empty": "empty: no mutant files",
    "grid run tiny.toml --out tiny.toml/out": "tiny.toml/out: cannot be written",
    "grid run wrong.toml": "wrong.toml: unknown key 'axs': did you mean axes",
    "grid run tiny.toml --mutants wrong": "wrong/halfpos.toml: unknown key 'orgin': did you mean origin",
    "weights train --family ropes": "unknown family 'ropes': did you mean rope",
    "completion csh": "'csh' is not one of 'bash', 'zsh', 'fish'",
    "scor": "No such command 'scor'",
    "grid rum": "No such command 'rum'",
    "score --detectr one-step": "No such option '--detectr'",
}


@pytest.fixture
def wrong(here):
    """The folder that the lines above speak of."""
    (here / "checks.py").write_text("def third(case):\n    return 0.0\n")
    (here / "wrong.toml").write_text('name = "wrong"\nsummary = "a wrong key"\naxs = 1\n[axes]\n')
    (here / "empty").mkdir()
    write_mutant(here / "wrong", orgin="seed")
    return here


@pytest.mark.parametrize("line", WRONG)
def test_invalid_input_is_one_line_that_names_it_and_exit_2(line, wrong, mutkv):
    before = content(wrong)
    done = mutkv(line)
    assert (done.code, done.out) == (2, "")
    assert WRONG[line] in done.line
    assert content(wrong) == before


@pytest.mark.parametrize("line", ["grid run tiny.toml", "grid status", "grid show", "score", "score --json"])
def test_results_of_another_version_are_refused_and_left_as_they_are(line, here, mutkv):
    manifest = here / "results/tiny/manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"dataset_version": 999}))
    before = content(here)
    done = mutkv(line)
    assert (done.code, done.out) == (2, "")
    assert "results of dataset version 999" in done.line
    assert content(here) == before


def test_without_any_results_the_command_that_makes_them_is_named(tmp_path, monkeypatch, mutkv):
    monkeypatch.chdir(tmp_path)
    for line in ("score", "grid status", "grid show"):
        done = mutkv(line)
        assert (done.code, done.out) == (2, "")
        assert "no results yet: run 'mutkv grid run' first" in done.line


def test_a_detector_that_crashes_on_every_case_is_exit_2_with_every_figure_undefined(here, mutkv):
    (here / "checks.py").write_text("def third(case):\n    raise ValueError('two\\nlines')\n")
    done = mutkv("score --json --detector checks.py:third --detector one-step")
    assert done.code == 2
    assert done.line.startswith("warning: detector 'third' crashed on 20 of 20 cases, first: ValueError: two lines")
    broken, whole = done.json["detectors"]
    assert (broken["crashed"], broken["flagged"], broken["recall"]["value"], broken["auc"]["value"]) == (
        20,
        0,
        *2 * [None],
    )
    assert whole["recall"]["value"] is not None


@pytest.mark.parametrize("line", ["score --seed -1"])
def test_a_negative_seed_is_invalid_input(line, here, mutkv):
    done = mutkv(line)
    assert done.code == 2
    assert "--seed" in done.line


@pytest.mark.parametrize("option", ["--fail-under", "--fail-under-low"])
def test_a_threshold_that_is_no_number_is_invalid_input_and_never_a_gate_that_holds(option, here, mutkv):
    done = mutkv(f"score --detector one-step {option} nan")
    assert done.code == 2
    assert option in done.line


@pytest.mark.parametrize("text", ["[]", "null", "{}"])
@pytest.mark.parametrize("name", ["manifest.json", "plan.json"])
def test_a_results_file_that_is_json_of_another_shape_is_invalid_input(name, text, here, mutkv, request):
    (here / "results/tiny" / name).write_text(text)
    done = mutkv("score")
    assert (done.code, done.out) == (2, "")
    assert "results/tiny" in done.line


@pytest.mark.parametrize("line", [["scenarios", "show", "two\nlines"], ["score", "two\nlines"]])
def test_a_name_with_a_line_break_is_still_one_line(line, here, mutkv):
    done = mutkv(line)
    assert done.code == 2
    assert "two" in done.line
