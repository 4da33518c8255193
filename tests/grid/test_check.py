"""The corpus test: what each shipped mutant's file claims is what is measured, and a false claim is reported."""

import pytest

from mutkv.api import flagging
from mutkv.grid.check import check_mutant
from mutkv.mutation.registry import load_mutants

from .small_grids import mutant_of

SHIPPED = load_mutants()


@pytest.mark.parametrize("mutant", SHIPPED.values(), ids=list(SHIPPED))
def test_every_shipped_mutant_is_what_its_file_says(mutant):
    assert check_mutant(mutant, flagging) == []


@pytest.mark.parametrize(
    ("name", "claim", "problem"),
    [
        ("posoff", {"path": "full"}, "path = 'full', measured 'cached'"),
        ("posoff", {"path": "both"}, "path = 'both', measured 'cached'"),
        ("posoff", {"acts": "always"}, "acts = 'always', measured 'decode'"),
        ("prerot", {"acts": "decode"}, "acts = 'decode', measured 'always'"),
        ("posfrozen", {"first_visible": "step 1"}, "first_visible = 'step 1', measured 'step 2'"),
        ("posfrozen", {"first_visible": "later"}, "first_visible = 'later', measured 'step 2'"),
        ("posfrozen", {"hidden_by": ("every-step",)}, "hidden_by 'every-step': this detector flags the witness"),
        ("posfrozen", {"hidden_by": ("steps = 2",)}, "hidden_by 'steps = 2': the mutant is observable there"),
        ("tril", {"features": ("gqa",)}, "lacks a feature or workload"),
        ("tril", {"equivalent": "bitwise", "reason": "no"}, "equivalent = 'bitwise', but the witness deviates by"),
        ("tril", {"equivalent": "algebraic", "reason": "no"}, "but the witness is observable"),
    ],
)
def test_a_false_claim_is_reported(name, claim, problem):
    problems = check_mutant(SHIPPED[name].model_copy(update=claim), flagging)
    assert any(problem in text for text in problems), problems


def test_a_mutant_of_both_paths_is_measured_as_one(tmp_path):
    line = ("model.py", "hidden = step.kernel.add(hidden, self.mlp(layer, hidden, step))")
    mutant = mutant_of(tmp_path, "no-mlp", *line, "self.mlp(layer, hidden, step)")
    measured = check_mutant(mutant, flagging)
    assert "path = 'cached', measured 'both'" in measured
    right = mutant.model_copy(update={"path": "both", "first_visible": "prefill"})
    assert check_mutant(right, flagging) == []


def test_an_unknown_detector_in_hidden_by_is_one_line_with_a_hint():
    claim = {"hidden_by": ("one-stepp",)}
    [problem] = check_mutant(SHIPPED["posfrozen"].model_copy(update=claim), flagging)
    assert problem.startswith("unknown detector 'one-stepp': did you mean one-step")
