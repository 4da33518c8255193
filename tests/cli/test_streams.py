"""Data go to stdout in the form that was asked for; progress, warnings and colours stay out of it."""

import csv
import io
import json
import re

import pytest

from mutkv.grid.scenario import scenario_files

from .command import terminal

READING = (
    "grid plan tiny.toml",
    "grid run tiny.toml",
    "grid status",
    "grid show",
    "grid show --by depth",
    "score",
    "score --by mutant --detector allclose",
    "score --by seed --detector one-step",
    "detectors list",
    "mutants list",
    "scenarios list",
)
PAGES = ("mutants show tril", "scenarios show detectors", "--help", "--version", "score --help")
ESCAPE = "\x1b"
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9\d|10[0-7])(?:;\d+)*m")


@pytest.mark.parametrize("line", [*READING, "mutants show tril"])
def test_json_is_one_document_without_anything_that_is_not_json(line, here, mutkv):
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    done = mutkv(f"{line} --json")
    assert done.code == 0
    assert json.loads(done.out, parse_constant=refuse)
    assert done.out.endswith("\n")


@pytest.mark.parametrize("line", READING)
def test_csv_has_a_header_and_rows_of_its_width(line, here, mutkv):
    done = mutkv(f"{line} --csv")
    assert done.code == 0
    header, *rows = csv.reader(io.StringIO(done.out))
    assert len(set(header)) == len(header) > 1
    assert rows
    assert {len(row) for row in rows} == {len(header)}


@pytest.mark.parametrize("line", [line for line in READING if not line.startswith(("score", "grid plan"))])
def test_csv_and_json_have_the_same_rows(line, here, mutkv):
    document = mutkv(f"{line} --json").json
    rows = document if isinstance(document, list) else document["rows"]
    read = list(csv.DictReader(io.StringIO(mutkv(f"{line} --csv").out)))
    assert [list(row) for row in read] == [list(row) for row in rows]
    assert [list(row.values()) for row in read] == [[str(value) for value in row.values()] for row in rows]


@pytest.mark.parametrize("line", [*READING, *PAGES])
def test_what_is_no_terminal_gets_no_escape_codes_no_progress_and_no_trailing_blanks(line, here, mutkv):
    done = mutkv(line)
    assert done.code == 0
    assert ESCAPE not in done.out + done.err
    assert "\r" not in done.out + done.err
    assert not re.search(r"[ \t]+$", done.out, re.MULTILINE)
    told = "nothing to compute: all 20 cases are recorded in results/tiny\n" if line.startswith("grid run") else ""
    assert done.err == told


def test_a_terminal_gets_colours_and_progress(here, mutkv, monkeypatch):
    with terminal(monkeypatch) as screen:
        assert mutkv("mutants show tril").code == 0
    assert COLOUR.search(screen[0])
    with terminal(monkeypatch) as screen:
        assert mutkv("grid run tiny.toml --out fresh").code == 0
    assert "20/20" in screen[0]
    assert "20 ok" in screen[0]


@pytest.mark.parametrize("line", ["mutants show tril", "score", "grid run tiny.toml --out fresh", "grid show"])
def test_no_color_takes_the_colours_from_a_terminal(line, here, mutkv, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    with terminal(monkeypatch) as screen:
        assert mutkv(line).code == 0
    assert len(screen[0]) > 200
    assert not COLOUR.search(screen[0])


def test_no_color_has_no_say_over_what_a_file_gets(here, mutkv, monkeypatch):
    plain = mutkv("score").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert mutkv("score").out == plain


def test_a_table_of_scores_on_80_columns_breaks_no_name_of_a_detector(here, mutkv, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with terminal(monkeypatch) as screen:
        assert mutkv("score --detector one-step --detector every-step").code == 0
    assert re.search(r"\bone-step\b", screen[0])
    assert re.search(r"\bevery-step\b", screen[0])


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_output_that_cannot_hold_a_delta_is_no_internal_error(encoding, here, monkeypatch, mutkv):
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
        assert mutkv("grid show").code == 0


def test_the_version_is_that_of_the_package(mutkv):
    import mutkv as package

    done = mutkv("--version")
    assert (done.code, done.out, done.err) == (0, f"mutkv, version {package.__version__}\n", "")


def test_a_shipped_scenario_is_shown_as_its_file_is(mutkv):
    for name, path in scenario_files().items():
        assert mutkv(f"scenarios show {name}").out == path.read_text(encoding="utf-8")
