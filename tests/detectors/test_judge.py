"""Judging a dataset: the frame it gives, and what a misbehaving detector can and cannot do to it."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
import torch

from mutkv.configuration import Configuration
from mutkv.detectors import default_detectors, detector, find_detector, judge, shipped_detectors
from mutkv.detectors.blocks import blocks
from mutkv.errors import Unsupported, UsageError
from mutkv.grid.results import Results
from mutkv.scoring import score_verdicts

from .datasets import recorded, scores, seen


class Watched(Results):
    """Results that remember which columns were read."""

    def columns(self, part, names):
        self.__dict__.setdefault("read", set()).update(names)
        return super().columns(part, names)


def with_cases(results, change):
    """Return the same results with the frame of cases changed."""
    copy = Watched(results.folder, results.manifest, results.plan)
    copy.__dict__["cases"] = change(results.cases.copy())
    return copy


def test_there_is_one_row_per_detector_and_case_with_the_cases_columns(small):
    frame = judge(small, default_detectors()).frame
    assert len(frame) == 9 * len(small.cases)
    for _, rows in frame.groupby("detector"):
        assert rows[small.cases.columns].reset_index(drop=True).equals(small.cases)
    added = {"detector", "threshold", "score", "flag", "crashed", "cost_tokens"}
    assert set(frame.columns) == {*small.cases.columns, *added}
    assert list(frame["detector"].unique()) == [shipped.name for shipped in default_detectors()]


def test_the_frame_is_what_scoring_takes(small):
    frame = judge(small, [find_detector("every-step")]).frame
    score = score_verdicts(frame, scenario="small", completeness=small.completeness)
    assert (score.detectors[0].recall.value, score.detectors[0].crashed) == (1.0, 0)


def test_cases_without_logits_get_no_verdict(small):
    def spoil(cases):
        cases.loc[[3, 10], "outcome"] = ["crashed", "timeout"]
        return cases

    frame = judge(with_cases(small, spoil), [find_detector("every-step"), find_detector("kv-compare")]).frame
    whole = scores(small, find_detector("every-step"), find_detector("kv-compare"))
    left_out = set(small.cases["case_id"][[3, 10]])
    assert set(frame["case_id"]) == set(small.cases["case_id"]) - left_out
    assert frame.set_index(["detector", "case_id"])["score"].equals(whole["score"].drop(left_out, level="case_id"))


def test_results_without_a_case_give_an_empty_frame(small):
    verdicts = judge(with_cases(small, lambda cases: cases.iloc[:0]), shipped_detectors())
    assert len(verdicts.frame) == 0
    assert "score" in verdicts.frame
    assert verdicts.warnings == ()


def test_logits_are_not_read_for_text(small):
    results = with_cases(small, lambda cases: cases)
    judge(results, [find_detector("text-8")])
    assert not any(name.startswith("logits") for name in results.read)
    judge(results, [find_detector("logprob-8")])
    assert {"logits_cached", "logits_full"} <= results.read
    assert not any(name.startswith("clean") or name == "max_abs" for name in results.read)


def test_progress_counts_cases_to_the_last_one(small):
    told = []
    judge(small, default_detectors(), on_progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert len(told) > 1
    assert told[-1] == (len(small.cases), len(small.cases))


def test_two_detectors_of_one_name_are_refused_and_the_same_one_twice_is_judged_once(small):
    mine = detector(name="one-step")(lambda case: 0.0)
    with pytest.raises(UsageError, match="two detectors are called 'one-step': rename one"):
        judge(small, [find_detector("one-step"), mine])
    assert len(judge(small, [mine, mine]).frame) == len(small.cases)


def test_no_detector_is_refused(small):
    with pytest.raises(UsageError, match="no detectors to judge: name at least one"):
        judge(small, [])


def test_torch_is_left_as_it_was(small):
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        inside = seen(small, lambda case: (torch.get_num_threads(), torch.is_grad_enabled()))
        assert set(inside) == {(1, False)}
        assert (torch.get_num_threads(), torch.is_grad_enabled()) == (2, True)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("returned", "score", "flag"),
    [
        (0.25, 0.25, False),
        (0.75, 0.75, True),
        (1, 1.0, True),
        (math.inf, math.inf, True),
        (np.float32(0.75), 0.75, True),
        (np.array(0.75), 0.75, True),
        (torch.tensor(0.75, requires_grad=True), 0.75, True),
        ((0.25, True), 0.25, True),
        ((0.75, False), 0.75, False),
        ((torch.tensor(0.25), torch.tensor(True)), 0.25, True),
        ((0.25, np.bool_(True)), 0.25, True),
        (0.5, 0.5, False),
    ],
)
def test_a_score_above_the_threshold_is_a_flag_unless_it_brings_its_own(single, returned, score, flag):
    verdicts = scores(single, detector(name="mine", threshold=0.5)(lambda case: returned))
    assert set(verdicts["score"]) == {score}
    assert set(verdicts["flag"]) == {flag}
    assert not verdicts["crashed"].any()


def leave():
    raise SystemExit(3)


def fail():
    pytest.fail("as pytest does it")


BAD = [
    (lambda: 1 / 0, "ZeroDivisionError: division by zero (test_judge.py line "),
    (leave, "SystemExit: 3 (test_judge.py line "),
    (fail, "Failed: as pytest does it (test_judge.py line "),
    (lambda: [][0], "IndexError: list index out of range (test_judge.py line "),
    (lambda: "a\nb" + 1, "TypeError: "),
    (lambda: math.nan, "returned nan: a score is a number >= 0"),
    (lambda: -0.5, "returned -0.5: a score is a number >= 0"),
    (lambda: (math.nan, True), "returned nan: a score is a number >= 0"),
    (lambda: None, "returned NoneType: a score is one number >= 0"),
    (lambda: "3", "returned str: a score is one number >= 0"),
    (lambda: torch.zeros(2, 1), "returned Tensor of shape [2, 1]: a score is one number >= 0"),
    (lambda: (1.0, True, "why"), "returned tuple: a score is one number >= 0"),
    (lambda: (1.0, "yes"), "returned str: a score is one number >= 0"),
]


@pytest.mark.parametrize(("misbehave", "reason"), BAD)
@pytest.mark.parametrize("needs", ["logits", "kv"])
def test_a_detector_that_gives_no_score_has_crashed_and_warns_in_one_line(single, misbehave, reason, needs):
    total = len(single.cases)
    verdicts = judge(single, [detector(name="mine", needs=needs)(lambda case: misbehave()), find_detector("one-step")])
    mine = verdicts.frame[verdicts.frame["detector"] == "mine"]
    assert mine["crashed"].all()
    assert not mine["flag"].any()
    assert set(mine["score"]) == {0.0}
    assert len(mine) == total
    [warning] = verdicts.warnings
    assert warning.startswith(f"detector 'mine' crashed on {total} of {total} cases, first: {reason}")
    assert "\n" not in warning
    assert not verdicts.frame[verdicts.frame["detector"] == "one-step"]["crashed"].any()


def test_a_crash_on_some_cases_keeps_the_others(small):
    def picky(case):
        if case.config.seed == 1:
            raise ValueError("seed 1")
        return 2.0

    verdicts = judge(small, [detector(picky)])
    assert (verdicts.frame["crashed"] == (verdicts.frame["seed"] == 1)).all()
    assert (verdicts.frame["flag"] == (verdicts.frame["seed"] == 0)).all()
    assert len(verdicts.warnings) == 1


@pytest.mark.parametrize("needs", ["logits", "kv", "live"])
def test_ctrl_c_ends_it(single, needs):
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge(single, [detector(needs=needs)(interrupt)])


def test_ctrl_c_ends_a_batch(single):
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge(single, [detector(batched=True)(interrupt)])


@pytest.mark.parametrize("spoil", ["raises", "nan", "negative"])
def test_one_bad_case_of_a_batch_takes_no_other_with_it(small, spoil):
    def picky(cases):
        deviates = (cases.cached.logits != cases.full.logits).flatten(1).any(dim=1)
        if spoil == "raises" and deviates.any():
            raise ValueError("deviates")
        return torch.where(deviates, math.nan if spoil == "nan" else -1.0, 0.5)

    frame = judge(small, [detector(batched=True)(picky), find_detector("every-step")]).frame
    mine, truth = (frame[frame["detector"] == name].set_index("case_id") for name in ("picky", "every-step"))
    assert mine["crashed"].equals(truth["score"] > 0)
    assert (mine["score"] == np.where(mine["crashed"], 0.0, 0.5)).all()


@pytest.mark.parametrize(
    "returned",
    [
        lambda count: torch.full((count,), 0.75),
        lambda count: np.full(count, 0.75),
        lambda count: [0.75] * count,
        lambda count: (torch.full((count,), 0.75), torch.ones(count, dtype=torch.bool)),
        lambda count: (np.full(count, 0.75), [True] * count),
    ],
)
def test_a_batch_may_return_tensors_arrays_or_lists(small, returned):
    verdicts = scores(small, detector(batched=True, name="mine")(lambda cases: returned(len(cases.step))))
    assert set(verdicts["score"]) == {0.75}
    assert verdicts["flag"].all()


def test_flags_of_a_batch_go_before_its_threshold(small):
    def contrary(cases):
        score = torch.arange(len(cases.step)).double()
        return score, score < 1

    verdicts = scores(small, detector(batched=True)(contrary))
    assert (verdicts["flag"] == (verdicts["score"] == 0)).all()
    assert verdicts["flag"].any()


def test_a_batch_of_another_shape_has_crashed(small):
    verdicts = judge(small, [detector(batched=True, name="mine")(lambda cases: torch.zeros(3, 1))])
    assert verdicts.frame["crashed"].all()
    assert "returned shape [3, 1]: a batched detector returns [1] here" in verdicts.warnings[0]


def test_what_an_engine_cannot_do_is_no_verdict_and_one_line(small):
    def asks_too_much(case):
        if case.config.depth == 2:
            raise Unsupported("no such thing")
        return 1.0

    verdicts = judge(small, [detector(asks_too_much), find_detector("one-step")])
    mine = verdicts.frame[verdicts.frame["detector"] == "asks-too-much"]
    assert set(mine["depth"]) == {1}
    assert not mine["crashed"].any()
    half = len(small.cases) // 2
    text = f"detector 'asks-too-much' is not applicable on {half} of {2 * half} cases, first: no such thing"
    assert verdicts.warnings == (text,)


def test_a_cost_nobody_stated_is_unknown_and_a_stated_one_is_of_the_configuration(small):
    assert scores(small, detector(name="mine")(lambda case: 0.0))["cost_tokens"].isna().all()
    dear = detector(name="mine", cost=lambda configuration: 100 * configuration.depth)(lambda case: 0.0)
    frame = scores(small, dear)
    assert (frame["cost_tokens"] == 100 * frame["depth"]).all()


def test_a_cost_that_raises_is_one_line_and_no_crash(small):
    verdicts = judge(small, [detector(name="mine", cost=lambda configuration: 1 / 0)(lambda case: 0.0)])
    assert verdicts.frame["cost_tokens"].isna().all()
    assert not verdicts.frame["crashed"].any()
    text = "the cost of detector 'mine' is unknown: its function raised ZeroDivisionError: division by zero"
    assert verdicts.warnings == (text,)


class TwoLayouts:
    """A part whose cases do not observe alike: two of steps 0 to 2, one of 1 and 2, one of 0 to 2 in another row."""

    study = None
    step = np.array([0, 1, 2, 1, 2, 0, 1, 2, 0, 1, 2])
    row = np.array([0] * 8 + [1] * 3)

    def __init__(self):
        columns = Configuration().columns()
        rows = [{**columns, "seed": seed, "part": "p", "outcome": "ok", "case_id": f"c{seed}"} for seed in range(4)]
        self.cases = pd.DataFrame(rows).assign(first=[0, 3, 5, 8], observations=[3, 2, 3, 3])

    def columns(self, part, names):
        zeros = np.zeros(11, int)
        logits = np.zeros((11, 4))
        logits[:, 0] = np.arange(11)
        known = {"step": self.step, "row": self.row, "emitted": zeros == 0, "logits_cached": logits}
        return {name: known.get(name, np.zeros((11, 4)) if name == "logits_full" else zeros) for name in names}


def test_cases_of_different_layouts_are_judged_in_batches_of_their_own():
    found = blocks(TwoLayouts(), TwoLayouts().cases)
    assert sorted(block.seeds for block in found) == [(0, 2), (1,), (3,)]
    one_step = find_detector("one-step")
    assert judge(TwoLayouts(), [one_step]).frame["score"].tolist() == [1, 3, 6, 9]
    alone = dataclasses.replace(one_step, batched=False)
    assert judge(TwoLayouts(), [alone]).frame["score"].tolist() == [1, 3, 6, 9]


def test_a_detector_sees_the_cases_in_the_order_of_the_frame(small):
    tokens = seen(small, lambda case: case.forced_token.tolist())
    assert tokens == [rows["forced_token"].tolist() for _, rows in recorded(small)]


def test_a_bare_true_is_no_score(single):
    verdicts = judge(single, [detector(name="mine")(lambda case: True)])
    assert verdicts.frame["crashed"].all()
    assert "returned True or False: return a score, or a pair of score and flag" in verdicts.warnings[0]
