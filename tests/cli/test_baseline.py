"""Exit code 4: a mutant is not what its file says, or the clean engine is not exact."""

from dataclasses import replace

import pytest

from mutkv.grid import run
from mutkv.grid.results import load

from .command import ROOT, write_mutant

WRONG = {
    "first_visible": ({"first_visible": "step 2"}, "first_visible = 'step 2', measured 'step 1'"),
    "path": ({"path": "both"}, "path = 'both', measured 'cached'"),
    "acts": ({"acts": "always"}, "acts = 'always', measured 'decode'"),
    "a detector that hides it": ({"hidden_by": ["one-step"]}, "hidden_by 'one-step': this detector flags the witness"),
    "columns that hide it": ({"hidden_by": ["steps = 1"]}, "hidden_by 'steps = 1': the mutant is observable there"),
    "witness": ({"witness": {"steps": 0}}, "the witness does not show it"),
}


@pytest.mark.parametrize("claim", WRONG)
def test_a_claim_of_a_mutants_file_that_does_not_hold_is_named_and_leaves_by_4(claim, tmp_path, mutkv):
    changes, problem = WRONG[claim]
    done = mutkv(f"mutants check halfpos poszero --mutants {write_mutant(tmp_path, **changes)}")
    assert (done.code, done.err) == (4, "")
    wrong, right, count = done.out.splitlines()
    assert wrong.startswith("halfpos: ")
    assert problem in wrong
    assert right == "poszero: ok"
    assert count == "1 of 2 mutants are as their files say"


def test_a_mutant_that_is_as_its_file_says_leaves_by_0(tmp_path, mutkv):
    done = mutkv(f"mutants check halfpos --mutants {write_mutant(tmp_path)}")
    assert (done.code, done.out) == (0, "halfpos: ok\n1 of 1 mutants are as their files say\n")


def test_without_names_the_whole_corpus_is_checked_and_a_users_folder_with_it(tmp_path, mutkv, monkeypatch):
    checked = []
    monkeypatch.setattr("mutkv.grid.check.check_mutant", lambda mutant, judge: checked.append(mutant.id) or [])
    done = mutkv(f"mutants check --mutants {write_mutant(tmp_path)}")
    shipped = [path.stem for path in (ROOT / "mutants").rglob("*.toml")]
    assert len(shipped) == 25
    assert sorted(checked) == sorted([*shipped, "halfpos"])
    assert done.out.endswith("26 of 26 mutants are as their files say\n")


@pytest.mark.parametrize("style", ["", "--json"])
def test_a_clean_engine_that_deviates_at_all_leaves_by_4_after_the_rows_are_recorded(style, here, mutkv, monkeypatch):
    clean = run.run_clean

    def inexact(*arguments):
        baseline = clean(*arguments)
        return replace(baseline, full=baseline.full * (1 + 2**-52))

    monkeypatch.setattr(run, "run_clean", inexact)
    done = mutkv(f"grid run tiny.toml --out inexact {style}")
    assert done.code == 4
    assert "the clean engine deviates by" in done.line
    assert "under exact arithmetic (configuration " in done.line
    assert load("inexact").completeness.done == 20
    rows = {row["mutant"]: row for row in mutkv("grid show inexact --json").json["rows"]}
    assert 0 < rows["clean"]["max|Δ| all steps"] < 1e-14
    if style:
        assert done.json["completeness"]["done"] == 20
