"""What a mutant file may say, and the one line that answers everything else."""

import pickle
from pathlib import Path

import pytest

from mutkv.configuration import Configuration
from mutkv.errors import UsageError
from mutkv.mutation.mutant import Mutant
from mutkv.schema import read_toml

GOOD = """
id = "posfrozen"
class = "position"
summary = "the prompt length is the offset"
origin = "seed"
path = "cached"
acts = "decode"
workloads = ["decode", "resume"]
features = ["rope"]
first_visible = "step 2"
hidden_by = ["one-step", "steps = 1", "steps = 1, rotation = 'read'"]

[patch.reference]
file = "engine.py"
line = "start = self.length"
becomes = "start = self.prompt_length"

[[reports]]
repo = "owner/name"
number = 7
confidence = "A"

[witness]
prompt_length = 3
sharpness = 2
"""

EQUIVALENT = 'first_visible = "never"\nequivalent = "bitwise"\nreason = "never read"'


def read(folder: Path, text: str) -> Mutant:
    path = folder / "x.toml"
    path.write_text(text, encoding="utf-8")
    return read_toml(path, Mutant)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(folder, text)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'x.toml'}: ")
    assert "\n" not in message
    return message.removeprefix(f"{folder / 'x.toml'}: ")


def test_every_key_of_a_file_arrives_in_the_model(tmp_path: Path) -> None:
    mutant = read(tmp_path, GOOD)
    assert (mutant.id, mutant.mutant_class, mutant.workloads) == ("posfrozen", "position", ("decode", "resume"))
    assert mutant.patch_for("mutkv.reference").becomes == "start = self.prompt_length"
    assert (mutant.reports[0].number, mutant.reports[0].note) == (7, "")
    assert mutant.source_path == tmp_path / "x.toml"


def test_the_witness_takes_missing_columns_from_the_schema(tmp_path: Path) -> None:
    witness = read(tmp_path, GOOD).witness_configuration()
    assert witness == Configuration(prompt_length=3, sharpness=2.0)
    assert witness.identity() == Configuration(prompt_length=3, sharpness=2.0).identity()


def test_hidden_by_is_split_into_detectors_and_changed_witnesses(tmp_path: Path) -> None:
    mutant = read(tmp_path, GOOD)
    assert mutant.hidden_detectors() == ("one-step",)
    assert mutant.hidden_configurations() == {
        "steps = 1": Configuration(prompt_length=3, sharpness=2.0, steps=1),
        "steps = 1, rotation = 'read'": Configuration(prompt_length=3, sharpness=2.0, steps=1, rotation="read"),
    }


@pytest.mark.parametrize("how", ["bitwise", "algebraic"])
def test_the_kind_follows_from_the_equivalence(tmp_path: Path, how: str) -> None:
    assert read(tmp_path, GOOD).kind == "faulty"
    text = GOOD.replace('first_visible = "step 2"', EQUIVALENT.replace("bitwise", how))
    assert read(tmp_path, text).kind == f"equivalent-{how}"


def test_the_patch_text_changes_with_the_patch_and_with_nothing_else(tmp_path: Path) -> None:
    base = read(tmp_path, GOOD).patch_text
    assert read(tmp_path, GOOD.replace("the offset", "wrong").replace('"step 2"', '"later"')).patch_text == base
    edits = [
        ("patch.reference", "patch.other"),
        ('"engine.py"', '"cache.py"'),
        ("self.length", "self.size"),
        ("self.prompt_length", "0"),
        ('becomes = "', 'within = "Session.extend"\nbecomes = "'),
    ]
    texts = {read(tmp_path, GOOD.replace(old, new)).patch_text for old, new in edits}
    assert len(texts | {base}) == len(edits) + 1


def test_a_mutant_is_hashable_frozen_and_survives_pickling(tmp_path: Path) -> None:
    mutant, again = read(tmp_path, GOOD), read(tmp_path, GOOD)
    assert {mutant: 1}[again] == 1
    copy = pickle.loads(pickle.dumps(mutant))
    assert (copy, copy.source_path) == (mutant, mutant.source_path)
    with pytest.raises(ValueError, match="frozen"):
        mutant.summary = "changed"


def test_a_patch_is_found_by_full_name_or_last_part_and_refused_for_other_packages(tmp_path: Path) -> None:
    mutant = read(tmp_path, GOOD.replace("[patch.reference]", '[patch."house.engine"]'))
    assert mutant.patch_for("house.engine").file == "engine.py"
    with pytest.raises(
        UsageError,
        match=r"x\.toml: no patch for house\.engines: it has \[patch\.house\.engine\], write \[patch\.engines\]",
    ):
        mutant.patch_for("house.engines")


@pytest.mark.parametrize("when", ["prefill", "step 1", "step 12", "later", "second chunk", "second request", "never"])
def test_first_visible_accepts_the_words_of_the_design(tmp_path: Path, when: str) -> None:
    assert read(tmp_path, GOOD.replace('"step 2"', f'"{when}"')).first_visible == when


@pytest.mark.parametrize("when", ["step 0", "step", "step -1", "step 01", "steps 2", "Prefill", "", "step 1\\n"])
def test_first_visible_refuses_other_words(tmp_path: Path, when: str) -> None:
    assert refusal(tmp_path, GOOD.replace('"step 2"', f'"{when}"')).startswith("'first_visible' should be prefill, ")


REFUSALS = [
    ("line =", "lin =", "unknown key 'patch.reference.lin': did you mean line?"),
    ("class =", "clas =", "unknown key 'clas': did you mean class or "),
    ("number = 7", "number = 7\nrpeo = 1", "unknown key 'reports[0].rpeo': did you mean repo?"),
    ("prompt_length = 3", "prompt_lenght = 3", "unknown key 'witness.prompt_lenght': did you mean prompt_length?"),
    ("steps = 1", "stps = 1", "'hidden_by' holds 'stps = 1': unknown key 'stps': did you mean steps"),
    ('"steps = 1"', '"steps ="', "'hidden_by' should hold detectors or 'column = value', found 'steps ='"),
    ('summary = "the prompt length is the offset"', "", "missing key 'summary': add it"),
    ('acts = "decode"', 'acts = "prefill"', "'acts' should be 'always' or 'decode', found \"prefill\""),
    ('["decode", "resume"]', '"decode"', "'workloads' should be a list, found \"decode\""),
    ('["decode", "resume"]', "[]", "'workloads' should be a list or table that is not empty, found []"),
    ('["rope"]', "[1]", "'features[0]' should be a string, found 1"),
    ("number = 7", 'number = "7"', "'reports[0].number' should be an integer, found \"7\""),
    ("prompt_length = 3", "prompt_length = true", "'witness.prompt_length' should be an integer, found true"),
    ("sharpness = 2", "rotation = 'up'", "'witness.rotation' should be 'write' or 'read', found \"up\""),
    ("prompt_length = 3", "prompt_length = 1", "'witness.prompt_length' should be at least 2, found 1"),
    (
        "sharpness = 2",
        "workload = 'beam'",
        "'witness.workload' should be one of workloads (decode, resume), found beam",
    ),
    ("[witness]", "[[witness]]", "'witness' should be a table, found [{"),
    ('"posfrozen"', '"posFrozen"', "'id' should be lower-case letters, digits and single dashes, found 'posFrozen'"),
    ('"posfrozen"', '"clean"', "'id' is the reserved name 'clean': choose another"),
    ('"posfrozen"', '"control"', "'id' is the reserved name 'control': choose another"),
    ('origin = "seed"', 'origin = "seed"\n"a\\nb" = 1', "unknown key 'a\\nb': known: acts"),
    ('first_visible = "step 2"', EQUIVALENT.rpartition("\n")[0], "an equivalent mutant needs the key 'reason'"),
    ('origin = "seed"', 'origin = "seed"\nreason = "r"', "'reason' is for equivalent mutants"),
    (
        '"step 2"',
        EQUIVALENT.replace("never", "later", 1)[16:],
        "'first_visible' of an equivalent mutant should be never",
    ),
    ("id = ", "id ", "invalid TOML: Expected '=' after a key in a key/value pair (at line 2, column 4)"),
    ("id = ", "x = " + "[" * 5000, "invalid TOML: "),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSALS, ids=[message[:40] for *_, message in REFUSALS])
def test_a_wrong_file_is_answered_by_one_line_with_key_and_fix(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in GOOD
    assert refusal(tmp_path, GOOD.replace(old, new)).startswith(message)


def test_a_misspelt_key_is_named_rather_than_the_missing_one_it_causes(tmp_path: Path) -> None:
    text = GOOD.replace("line =", "lin =").replace('origin = "seed"', "")
    assert refusal(tmp_path, text).startswith("unknown key 'patch.reference.lin'")


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    assert len(refusal(tmp_path, GOOD.replace('["rope"]', f'"{"x" * 5000}"'))) < 120


def test_an_unreadable_file_is_answered_by_one_line(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'id = "\xe9"')
    cases = {"none.toml": "no such file", "latin.toml": "not UTF-8 at byte 6", ".": "cannot be read"}
    for name, message in cases.items():
        with pytest.raises(UsageError, match=message):
            read_toml(tmp_path / name, Mutant)


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(GOOD, encoding="utf-8-sig")
    assert read_toml(path, Mutant).id == "posfrozen"
