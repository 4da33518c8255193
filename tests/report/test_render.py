"""Figures as tables show them, and JSON and CSV that round nothing."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from mutkv.report.render import cell, figure, print_frame, print_json

TINY = 2.6645352591003757e-15
FIGURES = [
    (0.0, "0.0"),
    (-0.0, "0.0"),
    (np.float64(0), "0.0"),
    (0, "0"),
    (5, "5"),
    (5.0, "5"),
    (240.0, "240"),
    (None, "n/a"),
    (float("nan"), "n/a"),
    (np.float64("nan"), "n/a"),
    (pd.NA, "n/a"),
    (TINY, "2.66e-15"),
    (0.0009994, "0.000999"),
    (0.001, "0.001"),
    (0.6250001, "0.625"),
    (2.2471, "2.247"),
    (-2.2471, "-2.247"),
    (1234.5, "1.23e+03"),
    (1e6, "1e+06"),
    (True, "True"),
    ("tril", "tril"),
]


@pytest.mark.parametrize(("value", "shown"), FIGURES, ids=repr)
def test_a_figure_is_shown_with_three_digits_and_zero_and_undefined_as_words_of_their_own(value, shown):
    assert figure(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(66.66666666666667, "66.7"), (100.0, "100.0"), (0.0, "0.0"), (0.04, "0.0"), (float("nan"), "n/a"), (None, "n/a")],
)
def test_a_percentage_has_one_decimal(value, shown):
    assert cell("output changed %", value) == shown
    assert cell("other", 66.66666666666667) == "66.667"


FRAME = pd.DataFrame(
    {
        "mutant": ["tril", "clean", "control"],
        "cases": [24, 24, 0],
        "max|Δ|": [3.2367891234567893, 0.0, TINY],
        "output changed %": [100.0, 0.0, np.nan],
        "flag": pd.array([True, False, None], dtype="boolean"),
    }
)


def test_a_table_shows_an_exact_zero_as_such_and_numbers_to_the_right(capsys):
    print_frame(FRAME, "table", "title")
    title, blank, heading, rule, *rows = capsys.readouterr().out.splitlines()
    assert (title, blank) == ("title", "")
    assert heading.split("  ")[0].strip() == "mutant"
    assert set(rule.strip()) == {"─"}
    assert [row.split() for row in rows if row] == [
        ["tril", "24", "3.237", "100.0", "True"],
        ["clean", "24", "0.0", "0.0", "False"],
        ["control", "0", "2.66e-15", "n/a", "n/a"],
    ]
    ends = {row.index(" 24") + 3 for row in rows[:2]} | {rows[2].index(" 0 ") + 2}
    assert len(ends) == 1


def test_json_keeps_every_digit_and_undefined_is_null(capsys):
    print_frame(FRAME, "json", "title", {"scenario": "hand"})
    document = json.loads(capsys.readouterr().out)
    assert document == {
        "scenario": "hand",
        "rows": [
            {"mutant": "tril", "cases": 24, "max|Δ|": 3.2367891234567893, "output changed %": 100.0, "flag": True},
            {"mutant": "clean", "cases": 24, "max|Δ|": 0.0, "output changed %": 0.0, "flag": False},
            {"mutant": "control", "cases": 0, "max|Δ|": TINY, "output changed %": None, "flag": None},
        ],
    }


def test_json_without_a_heading_is_the_list_of_rows(capsys):
    print_frame(FRAME[["mutant"]], "json")
    assert json.loads(capsys.readouterr().out) == [{"mutant": name} for name in ("tril", "clean", "control")]


def test_csv_keeps_every_digit_and_undefined_is_empty(capsys):
    print_frame(FRAME, "csv", "title", {"scenario": "hand"})
    header, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert header == list(FRAME.columns)
    assert float(rows[2][2]) == TINY
    assert float(rows[0][2]) == 3.2367891234567893
    assert rows[2][3:] == ["", ""]


def test_a_frame_without_rows_is_still_what_was_asked_for(capsys):
    print_frame(FRAME[:0], "json")
    assert json.loads(capsys.readouterr().out) == []
    print_frame(FRAME[:0], "csv")
    assert capsys.readouterr().out == ",".join(FRAME.columns) + "\n"
    print_frame(FRAME[:0], "table")
    assert "mutant" in capsys.readouterr().out


def test_json_refuses_what_is_no_json_rather_than_print_it(capsys):
    with pytest.raises(ValueError, match="JSON"):
        print_json({"value": float("nan")})
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "text", ["keys[layer] of [queries, keys]", "closes [/nothing]", "[0.25, 1.00] [bold]at[/bold]"]
)
def test_text_in_brackets_is_no_markup(text, capsys):
    print_frame(pd.DataFrame({"rule [R, B]": [text]}), "table")
    out = capsys.readouterr().out
    assert text in out
    assert "rule [R, B]" in out
