"""One line for one line: what is replaced, and what is refused with which words."""

import subprocess
from pathlib import Path

import pytest

from mutkv.errors import UsageError
from mutkv.mutation.mutant import Patch
from mutkv.mutation.patch import diff, patched_source

from .conftest import FIXTURES, MakeMutant

SOURCE = '''"""A module."""


def top(x):
    y = x + 1
    return y


class Box:
    @property
    def size(self):
        y = 2
        return y

    @size.setter
    def size(self, value):
        self.value = value
        self.other = value

    def twice(self):
        y = 2
        if y:
            y = 2
        return y
'''


def patched(line: str, becomes: str, within: str | None = None, source: str = SOURCE) -> tuple[str, int]:
    return patched_source(Patch(file="m.py", line=line, becomes=becomes, within=within), source, "m.py")


def refusal(line: str, becomes: str, within: str | None = None, source: str = SOURCE) -> str:
    with pytest.raises(UsageError) as caught:
        patched(line, becomes, within, source)
    message = str(caught.value)
    assert "\n" not in message
    return message


def changed_lines(old: str, new: str) -> list[tuple[int, str]]:
    before, after = old.split("\n"), new.split("\n")
    assert len(before) == len(after)
    return [(number, b) for number, (a, b) in enumerate(zip(before, after, strict=True), 1) if a != b]


def test_exactly_the_named_line_is_replaced_at_its_own_indentation() -> None:
    new, number = patched("y = x + 1", "y = x")
    assert changed_lines(SOURCE, new) == [(5, "    y = x")]
    assert number == 5


def test_blanks_around_the_patch_do_not_matter() -> None:
    assert patched("  y = x + 1 ", "\ty = x\n") == patched("y = x + 1", "y = x")


def test_within_chooses_among_repeated_lines() -> None:
    new, number = patched("return y", "return 0", within="Box.size")
    assert changed_lines(SOURCE, new) == [(number, "        return 0")]
    assert number == 13


def test_within_spans_all_definitions_of_a_name() -> None:
    assert patched("self.other = value", "self.other = 0", within="Box.size")[1] == 18


def test_a_form_feed_or_a_unicode_separator_does_not_shift_the_line() -> None:
    source = "a = '\u2028'\n\x0c\nb = 1\nc = 2\n"
    new, number = patched("c = 2", "c = 3", source=source)
    assert (new, number) == ("a = '\u2028'\n\x0c\nb = 1\nc = 3\n", 4)


@pytest.mark.parametrize(
    ("line", "becomes", "within", "message"),
    [
        ("y = x + 2", "y = x", None, "line 'y = x + 2' not found: did you mean line 5, 'y = x + 1'?"),
        ("zzzzzz", "y = x", None, "line 'zzzzzz' not found: copy one whole line of the file"),
        ("x + 1", "y = 0", None, "line 'x + 1' not found: did you mean line 5, 'y = x + 1'?"),
        ("y = x + 1", "y = 0", "Box", "line 'y = x + 1' not found in Box: it is at line 5, outside: mend 'within'"),
        ("y = x + 1", "y = 0", "tip", "unknown within 'tip': did you mean top?"),
        ("return y", "return 0", None, "line 'return y' occurs 3 times (lines 6, 13 and 24): name one place, "),
        ("return y", "return 0", None, '"top" or within = "Box.size" or within = "Box.twice"'),
        ("y = 2", "y = 3", "Box.twice", "occurs 2 times (lines 21 and 23) in Box.twice: no 'within' tells them apart"),
        ("y = x + 1\nreturn y", "y = 0", None, "'line' is 2 lines: a mutant replaces exactly one line by one line"),
        ("y = x + 1", "y = 0\n    y = 1", None, "'becomes' is 2 lines"),
        ("y = x + 1", "  ", None, "'becomes' is 0 lines"),
        ("y = x + 1", "# gone", None, "'becomes' holds no code: write pass to drop a statement"),
        ("y = x + 1", " y = x + 1 ", None, "'becomes' is the same as 'line': change it"),
        ("y = x + 1", "y = (x", None, "does not compile with 'becomes' at line 5: '(' was never closed at line 5"),
        ("y = x + 1", "y = x + 1 \0", None, "does not compile with 'becomes' at line 5: source code "),
        ("y = x + 1", "yield = 1", None, "does not compile with 'becomes' at line 5: "),
        ("return y", "break", "top", "does not compile with 'becomes' at line 6: 'break' outside loop at line 6"),
    ],
)
def test_a_patch_that_does_not_fit_is_refused_precisely(
    line: str, becomes: str, within: str | None, message: str
) -> None:
    text = refusal(line, becomes, within)
    assert text.startswith("m.py: ")
    assert message in text


def test_a_source_that_never_compiled_is_not_blamed_on_the_patch() -> None:
    assert refusal("a = 1", "a = 2", source="a = 1\nb = (\n").startswith("m.py: does not compile before it is patched")


@pytest.mark.parametrize(("package", "ending"), [("newline", "\n"), ("no_newline", "")])
def test_git_applies_the_diff_to_the_clean_file_and_gets_the_patched_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: MakeMutant, package: str, ending: str
) -> None:
    source = "def last():\n    a = 1\n    return a" + ending
    folder = tmp_path / package / "engine"
    folder.mkdir(parents=True)
    for place in (folder.parent, folder):
        (place / "__init__.py").touch()
    (folder / "code.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    text = diff(mutant("code.py", "return a", "return 0"), f"{package}.engine")
    subprocess.run(["git", "apply", "-"], input=text.encode(), cwd=tmp_path, check=True)
    assert (folder / "code.py").read_text() == source.replace("return a", "return 0")


def test_a_diff_has_one_line_out_and_one_line_in(mutant: MakeMutant) -> None:
    text = diff(mutant("cache.py", "return row * 10", "return row * 11"), "tinyhouse.engine")
    rows = [row for row in text.splitlines() if row[0] in "+-" and row[:3] not in ("+++", "---")]
    assert rows == ["-        return row * 10", "+        return row * 11"]
    assert text.startswith("--- a/tinyhouse/engine/cache.py\n+++ b/tinyhouse/engine/cache.py\n")
    assert (FIXTURES / "tinyhouse/engine/cache.py").is_file()
