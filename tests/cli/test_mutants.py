"""Choosing mutants by their properties, and the file for a new one."""

import pytest

from mutkv.mutation.registry import load_mutants

FILLED = {
    'class = "" ': 'class = "position" ',
    'summary = "" ': 'summary = "positions stop growing at 8" ',
    'acts = "always" ': 'acts = "decode" ',
    'first_visible = "step 1" ': 'first_visible = "later" ',
    "hidden_by = [] ": 'hidden_by = ["one-step", "steps = 4"] ',
    'file = "" ': 'file = "engine.py" ',
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
