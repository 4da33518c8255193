"""The page of mutants on a corpus made by hand."""

import pytest

from mutkv.mutation.mutant import Mutant
from mutkv.report.corpus_page import corpus_page

DETECTORS = ("prefill", "one-step")
FAULTY = {
    "id": "halfpos",
    "class": "position",
    "summary": "made by a test",
    "origin": "synthetic",
    "path": "cached",
    "acts": "decode",
    "workloads": ["decode"],
    "first_visible": "step 1",
    "patch": {"reference": {"file": "engine.py", "line": "a", "becomes": "b"}},
    "witness": {"prompt_length": 4},
}
EQUIVALENT = {"equivalent": "bitwise", "reason": "it is a copy", "first_visible": "never"}
REPORTS = [
    {"repo": "a/b", "number": 7, "confidence": "A"},
    {"repo": "c/d", "number": 8, "confidence": "C"},
]
LINKS = "[a/b#7](https://github.com/a/b/issues/7) (A), [c/d#8](https://github.com/c/d/issues/8) (C)"


def page(*changes, detectors=DETECTORS):
    mutants = [Mutant.model_validate(FAULTY | change) for change in changes]
    return corpus_page({mutant.id: mutant for mutant in mutants}, detectors)


def cells(text, name="halfpos"):
    [row] = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
    return row.removeprefix("| ").removesuffix(" |").split(" | ")


def test_a_faulty_mutant_is_a_row_of_what_its_file_says():
    expected = [
        "`halfpos`",
        "made by a test",
        "cached",
        "`decode`",
        "`gqa`, `rope`",
        "step 1",
        "`prefill`",
        "synthetic",
    ]
    assert cells(page({"features": ["gqa", "rope"], "hidden_by": ["prefill"]})) == expected


def test_classes_are_sections_in_order_and_equivalents_stand_in_the_last_one_alone():
    text = page(
        {"id": "c", "class": "write"},
        {"id": "b", "class": "mask"},
        {"id": "a", "class": "write"},
        {"id": "same", "class": "copy"} | EQUIVALENT,
    )
    rows = [line.split(" | ")[0] for line in text.splitlines() if line.startswith(("###", "| `"))]
    assert rows == ["### Class `mask`", "| `b`", "### Class `write`", "| `a`", "| `c`", "### Equivalents", "| `same`"]
    assert cells(text, "same") == ["`same`", "made by a test", "bitwise", "it is a copy"]


def test_the_counts_are_those_of_the_corpus():
    text = page({"id": "a"}, {"id": "b", "origin": "seed"}, {"id": "c", "class": "copy"} | EQUIVALENT)
    assert text.startswith("3 mutants: 1 seed, 0 reported, 2 synthetic; 2 faulty in 1 classes; 1 equivalents.\n")


@pytest.mark.parametrize(
    ("hidden_by", "shown"),
    [
        ([], "none"),
        (["one-step", "steps = 1"], "`one-step`, `steps = 1`"),
        (["one-step", "prefill"], "all detectors"),
        (["one-step", "steps = 1", "prefill", "depth = 1"], "all detectors, `steps = 1`, `depth = 1`"),
    ],
)
def test_all_detectors_are_named_as_such_and_overrides_always(hidden_by, shown):
    assert cells(page({"hidden_by": hidden_by}))[6] == shown


def test_without_detectors_nothing_is_hidden_by_all_of_them():
    assert cells(page({"hidden_by": []}, detectors=()))[6] == "none"


@pytest.mark.parametrize(
    ("origin", "reports", "shown"),
    [
        ("seed", [], "seed"),
        ("reported", REPORTS, LINKS),
        ("reported", [], "reported"),
        ("seed", REPORTS, f"seed, {LINKS}"),
    ],
)
def test_a_reported_mutant_links_its_reports_and_any_other_names_its_origin(origin, reports, shown):
    assert cells(page({"origin": origin, "reports": reports}))[7] == shown


def test_a_bar_or_a_line_break_in_a_cell_ends_neither_the_cell_nor_the_row():
    assert cells(page({"summary": "a | b\nc"}))[1] == "a \\| b c"
