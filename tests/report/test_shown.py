"""Which of a run's tables are shown, and how several are printed."""

import json

import pytest

from mutkv.errors import UsageError
from mutkv.report.render import print_tables
from mutkv.report.summary import chosen, summary

from .test_rounding import rows_of, small_run


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    axes = {"seed": [0, 1, 2, 3], "weights": ["random", "near-tied"], "decode_order": "pairwise"}
    return small_run(tmp_path_factory.mktemp("rounding"), axes, table="rounding")


@pytest.fixture(scope="module")
def tables(results):
    return summary(results)


def test_data_is_left_out_of_what_is_shown_unless_it_is_named(results, tables):
    assert list(tables) == ["agreement", "runs", "flips"]
    assert list(chosen(results, tables, None)) == ["agreement", "runs"]
    for name, table in tables.items():
        [(only, found)] = chosen(results, tables, name).items()
        assert only == name
        assert found is table


def test_an_unknown_table_is_refused_with_the_nearest_one(results, tables):
    with pytest.raises(UsageError, match=r"^unknown table 'flip': did you mean flips\?$"):
        chosen(results, tables, "flip")


def printed(capsys, tables, style):
    print_tables(tables, style, "a title", {"scenario": "small"})
    return capsys.readouterr().out


def test_several_tables_are_one_json_document_with_the_first_ones_rows_on_top(capsys, tables):
    document = json.loads(printed(capsys, tables, "json"))
    assert {name: document[name] for name in ("scenario", "table")} == {"scenario": "small", "table": "agreement"}
    assert document["rows"] == rows_of(tables["agreement"])
    known = {name: tables[name].astype(object).where(tables[name].notna(), None) for name in ("runs", "flips")}
    assert document["tables"] == {name: rows_of(table) for name, table in known.items()}


def test_csv_is_of_the_first_table_and_a_screen_shows_all_below_their_names(capsys, tables):
    assert printed(capsys, tables, "csv") == tables["agreement"].to_csv(index=False)
    lines = printed(capsys, tables, "table").splitlines()
    assert [line for line in lines if line in ("a title", "agreement:", "runs:", "flips:")] == [
        "a title",
        "agreement:",
        "runs:",
        "flips:",
    ]
    assert len([line for line in lines if "near-tied" in line]) == sum(
        (table["weights"] == "near-tied").sum() for table in tables.values()
    )


def test_one_table_is_printed_as_ever(capsys, tables):
    document = json.loads(printed(capsys, {"flips": tables["flips"]}, "json"))
    assert document == {"scenario": "small", "table": "flips", "rows": rows_of(tables["flips"])}
