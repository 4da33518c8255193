"""Choosing mutants by their properties, the file for a new one, and one mutant: shown, and its witness run."""

import re
import shlex

import pytest

from mutkv.mutation.registry import load_mutants

from .command import content, terminal, write_mutant

FILLED = {
    'class = "" ': 'class = "position" ',
    'summary = "" ': 'summary = "positions stop growing at 8" ',
    'acts = "always" ': 'acts = "decode" ',
    'first_visible = "step 1" ': 'first_visible = "later" ',
    "hidden_by = [] ": 'hidden_by = ["one-step", "steps = 4"] ',
    'file = "" ': 'file = "session.py" ',
    'line = "" ': 'line = "start = self.length" ',
    'becomes = "" ': 'becomes = "start = min(self.length, 8)" ',
}


def listed(mutkv, options):
    return {row["mutant"] for row in mutkv(f"mutants list --json {options}").json}


@pytest.mark.parametrize(
    ("options", "has"),
    [
        ("--class mask", lambda m: m.mutant_class == "mask"),
        ("--origin reported", lambda m: m.origin == "reported"),
        ("--path both", lambda m: m.path == "both"),
        ("--workload decode", lambda m: "decode" in m.workloads),
        ("--visible 'step 1'", lambda m: m.first_visible == "step 1"),
        ("--equivalent algebraic", lambda m: m.equivalent == "algebraic"),
        ("--equivalent no", lambda m: m.equivalent is None),
        ("--class position --origin seed", lambda m: (m.mutant_class, m.origin) == ("position", "seed")),
    ],
)
def test_mutants_are_chosen_by_what_their_files_say(mutkv, options, has):
    expected = {name for name, mutant in load_mutants().items() if has(mutant)}
    assert expected
    assert listed(mutkv, options) == expected


def test_two_properties_that_no_mutant_has_together_leave_none(mutkv):
    assert listed(mutkv, "--class heads --origin seed") == set()


def test_a_value_that_no_mutant_has_is_answered_with_the_nearest(mutkv):
    done = mutkv("mutants list --class msk")
    assert (done.code, done.line) == (2, "unknown class 'msk': did you mean mask?")


def test_a_new_mutants_file_is_accepted_once_it_is_filled_in(tmp_path, mutkv, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = mutkv("mutants new halfpos --out mine")
    assert (done.code, done.out) == (
        0,
        "wrote mine/halfpos.toml: fill it in, then: mutkv mutants check halfpos --mutants mine\n",
    )
    path = tmp_path / "mine/halfpos.toml"
    text = path.read_text()
    empty = mutkv("mutants check halfpos --mutants mine")
    assert (empty.code, empty.line.split(": ")[0]) == (2, "mine/halfpos.toml")
    for blank, filled in FILLED.items():
        assert text.count(blank) == 1
        text = text.replace(blank, filled)
    path.write_text(text)
    done = mutkv("mutants check halfpos --mutants mine")
    assert (done.code, done.out.splitlines()[0]) == (0, "halfpos: ok")


def test_a_new_mutant_stands_apart_from_the_shipped_ones_of_a_checkout(tmp_path, mutkv, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert mutkv("mutants new halfpos").code == 0
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.toml")] == ["my_mutants/halfpos.toml"]


def test_what_is_commented_out_in_the_file_is_right_as_well(tmp_path, mutkv, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mutkv("mutants new other --out mine")
    path = tmp_path / "mine/other.toml"
    text = path.read_text()
    for blank, filled in FILLED.items():
        text = text.replace(blank, filled)
    for key in ("within", "[[reports]]", "repo", "number", "confidence", "note", "equivalent", "reason"):
        assert f"# {key}" in text
        text = text.replace(f"# {key}", key)
    for blank, filled in (('reason = ""', 'reason = "x"'), ('note = ""', 'note = "x"'), ('"later"', '"never"')):
        text = text.replace(blank, filled)
    path.write_text(text)
    [row] = [row for row in mutkv("mutants list --mutants mine --json").json if row["mutant"] == "other"]
    assert row["class"] == "position"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("mutants new Half_Pos", "mutant 'Half_Pos': should be lower-case letters, digits and single dashes"),
        ("mutants new there --out mine", "mine/there.toml: there is such a file: choose another name or folder"),
        (
            "mutants new x --out file/mine",
            "file/mine/x.toml: cannot be written (Not a directory): choose",
        ),
    ],
)
def test_a_file_that_cannot_be_written_is_one_line(tmp_path, mutkv, monkeypatch, line, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/there.toml").write_text("mine")
    (tmp_path / "file").write_text("")
    done = mutkv(line)
    assert done.code == 2
    assert done.line.startswith(message)
    assert (tmp_path / "mine/there.toml").read_text() == "mine"


def printed_commands(mutkv, line):
    """Return the command lines that ``mutants show`` prints, without the name of the program."""
    found = re.findall(r"^\w+ it: mutkv (.+)$", mutkv(line).out, re.MULTILINE)
    assert [command.split()[1] for command in found] == ["check", "run"]
    return found


def test_show_prints_diff_provenance_witness_and_commands_that_run(tmp_path, mutkv, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = mutkv("mutants show past-len-plus-one").out
    for text in (
        "--- a/mutkv/reference/",
        "+++ b/mutkv/reference/",
        "microsoft/onnxruntime-genai#2354",
        "witness: seed",
    ):
        assert text in out
    for command in printed_commands(mutkv, "mutants show past-len-plus-one"):
        assert "--mutants" not in command
        assert mutkv(command).code == 0


def test_the_commands_for_a_mutant_of_ones_own_name_its_folder_and_run(tmp_path, mutkv, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_mutant(tmp_path / "other", id="other")
    write_mutant(tmp_path / "my mutants")
    for command in printed_commands(mutkv, "mutants show halfpos --mutants other --mutants 'my mutants'"):
        assert shlex.split(command)[-2:] == ["--mutants", "my mutants"]
        assert mutkv(command).code == 0


def test_a_long_command_is_one_line_on_a_narrow_terminal(tmp_path, mutkv, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    mine = write_mutant(tmp_path / ("long-" * 10))
    with terminal(monkeypatch) as screen:
        assert mutkv(f"mutants show halfpos --mutants {mine}").code == 0
    assert f"run it: mutkv mutants run halfpos --mutants {mine}\r\n" in screen[0]


def test_a_witness_runs_beside_clean_and_control_and_can_be_scored_by_mutant(tmp_path, mutkv, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = mutkv("mutants run posfrozen")
    assert done.code == 0
    assert done.out.startswith("witness-posfrozen: 3 cases planned, 3 done, 0 failed, 0 missing\n")
    rows = {row["mutant"]: row for row in mutkv("grid show results/witness-posfrozen --json").json["rows"]}
    assert {name: row["observable %"] for name, row in rows.items()} == {"posfrozen": 100, "clean": 0, "control": 0}
    assert rows["posfrozen"]["max|Δ| step 1"] == 0.0
    scored = mutkv("score results/witness-posfrozen --by mutant --json --detector one-step --detector every-step")
    assert scored.code == 0
    blind, seen = scored.json["by"]["mutant"]["posfrozen"]["detectors"]
    assert (blind["name"], blind["flagged"], seen["name"], seen["flagged"]) == ("one-step", 1, "every-step", 2)


def test_a_witness_goes_where_out_says_and_is_not_run_twice(tmp_path, mutkv, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert mutkv("mutants run tril --out there --json").json["completeness"]["done"] == 3
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    before = content(tmp_path / "there" / "cases")
    assert mutkv("mutants run tril --out there --json").err.startswith("nothing to compute")
    assert content(tmp_path / "there" / "cases") == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": ["gqa"]}, "mine/halfpos.toml: witness: lacks one of gqa, decode, which the mutant needs: add it"),
        ({"witness": {"kv_heads": 3}}, "kv_heads 3 does not divide heads 2: use a divisor"),
    ],
)
def test_a_witness_that_cannot_be_run_is_one_line_and_nothing_is_written(
    changes, message, tmp_path, mutkv, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    write_mutant(tmp_path / "mine", **changes)
    done = mutkv("mutants run halfpos --mutants mine")
    assert (done.code, done.line) == (2, message)
    assert not (tmp_path / "results").exists()
