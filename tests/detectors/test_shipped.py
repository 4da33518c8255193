"""The shipped ten, against plain numpy on the rows in the files, and against what is known of the eight mutants."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax

from mutkv.configuration import Configuration
from mutkv.detectors import detector, find_detector, judge, shipped_detectors
from mutkv.detectors.case import Case
from mutkv.reference import Engine
from mutkv.weights import load_weights

from .datasets import flagged, recorded, scores

OFFLINE = [shipped.name for shipped in shipped_detectors() if shipped.offline]


def deviations(rows, keep=slice(None)):
    return np.abs(rows["logits_cached"] - rows["logits_full"])[keep].max(initial=0.0)


def last(rows):
    return rows["step"] == rows["step"].max()


def argmaxes(rows):
    return rows["logits_cached"].argmax(axis=1), rows["logits_full"].argmax(axis=1)


def argmax_rule(rows, keep):
    cached, full = argmaxes(rows)
    score = deviations(rows, keep)
    return score, bool((cached != full)[keep].any()) or score > 1e-2


def excess(rows):
    over = np.abs(rows["logits_cached"] - rows["logits_full"]) - 1e-5 * np.abs(rows["logits_full"])
    return over.max().clip(0)


def text(rows):
    worst = 0.0
    cached, full = argmaxes(rows)
    for row in set(rows["row"]):
        keep = (rows["row"] == row) & (rows["step"] <= 7)
        pairs = list(zip(cached[keep], full[keep], strict=True))
        prefix = next((k for k, (a, b) in enumerate(pairs) if a != b), len(pairs))
        worst = max(worst, 1 - prefix / len(pairs))
    return worst


def logprob(rows):
    keep = rows["step"] <= 7
    chosen = rows["logits_cached"].argmax(axis=1)[keep]
    cached, full = (log_softmax(rows[f"logits_{path}"][keep], axis=1) for path in ("cached", "full"))
    index = np.arange(len(chosen))
    return np.abs(cached[index, chosen] - full[index, chosen]).max()


RULES = {
    "prefill": (0.0, lambda rows: deviations(rows, rows["step"] == 0)),
    "one-step": (0.0, lambda rows: deviations(rows, rows["step"] == 1)),
    "every-step": (0.0, deviations),
    "last-step": (0.0, lambda rows: deviations(rows, last(rows))),
    "argmax-one-step": (1e-2, lambda rows: argmax_rule(rows, rows["step"] == 1)),
    "argmax-every-step": (1e-2, lambda rows: argmax_rule(rows, slice(None))),
    "allclose": (1e-5, excess),
    "text-8": (0.0, text),
    "logprob-8": (1e-2, logprob),
}


@pytest.mark.parametrize("name", OFFLINE)
def test_a_shipped_rule_is_what_numpy_says(small, name):
    verdicts = scores(small, find_detector(name)).loc[name]
    threshold, rule = RULES[name]
    assert set(verdicts["threshold"]) == {threshold}
    for row, rows in recorded(small):
        expected = rule(rows)
        score, flag = expected if isinstance(expected, tuple) else (expected, expected > threshold)
        assert verdicts.at[row["case_id"], "score"] == pytest.approx(score, rel=1e-12, abs=1e-15)
        assert verdicts.at[row["case_id"], "flag"] == flag


@pytest.mark.parametrize("name", OFFLINE)
def test_a_batch_gives_the_bits_of_single_cases(small, name):
    batched = find_detector(name)
    alone = detector(needs=batched.needs, name=name, threshold=batched.threshold)(batched.function)
    assert batched.batched
    assert (
        judge(small, [batched])
        .frame.drop(columns="cost_tokens")
        .equals(judge(small, [alone]).frame.drop(columns="cost_tokens"))
    )


def test_the_shipped_ten_have_the_names_of_the_design_and_a_rule_to_print():
    names = [shipped.name for shipped in shipped_detectors()]
    assert names == [*RULES, "kv-compare"]
    assert all(shipped.summary.endswith(".") for shipped in shipped_detectors())


def test_one_step_is_blind_to_posfrozen_and_freeze(small):
    found = flagged(small, find_detector("one-step"))
    assert found["posfrozen"] == found["freeze"] == 0
    assert all(found[name] == 1 for name in ("posoff", "poszero", "tril", "stale", "prerot"))


def test_one_step_is_blind_to_evict_before_ten_tokens(small):
    assert flagged(small, find_detector("one-step"))["evict"] == 0
    assert flagged(small, find_detector("last-step"))["evict"] == 1


def test_every_step_sees_every_mutant_and_no_clean_case(small):
    found = flagged(small, find_detector("every-step"))
    assert found.pop("clean") == 0
    assert all(share == 1 for share in found.values())  # the control too, which is what thresholds are for


def test_a_tolerance_forgives_the_control(small):
    for name in ("allclose", "argmax-every-step", "text-8", "logprob-8"):
        assert flagged(small, find_detector(name))["control"] == 0


def test_prefill_sees_no_fault_of_decoding(small):
    found = flagged(small, find_detector("prefill"))
    assert all(found[name] == 0 for name in ("clean", "evict", "freeze", "posfrozen", "posoff", "poszero", "stale"))


def test_kv_compare_sees_what_is_stored_wrongly_at_any_depth_and_wrong_reads_from_depth_two(small):
    frame = judge(small, [find_detector("kv-compare")]).frame
    share = frame.groupby(["mutant", "depth"])["flag"].mean()
    assert all(share[name, depth] == 1 for name in ("posoff", "posfrozen", "poszero", "freeze") for depth in (1, 2))
    assert all((share[name, 1], share[name, 2]) == (0, 1) for name in ("stale", "evict", "tril"))
    assert share["clean", 1] == share["clean", 2] == 0


def test_a_missing_row_counts_its_full_value(single):
    frame = scores(single, find_detector("kv-compare")).loc["kv-compare"].set_index("mutant")
    trace = full_trace(single)
    missing = [rows[0, 0, 3:].abs().max() for rows in (*trace.keys, *trace.values)]
    assert frame.at["freeze", "score"] == max(missing)


def test_kv_compare_finds_keys_that_were_never_rotated(single):
    frame = scores(single, find_detector("kv-compare")).loc["kv-compare"].set_index("mutant")
    computed = full_trace(single).keys[-1][0, 0]  # rotated, [tokens, heads, 4]: pairs (0, 2) and (1, 3)
    angle = torch.arange(len(computed), dtype=torch.float64)[:, None, None] * torch.tensor([1.0, 0.01])
    turn = torch.polar(torch.ones_like(angle), -angle)
    plain = torch.complex(computed[..., :2], computed[..., 2:]) * turn
    difference = (torch.cat([plain.real, plain.imag], dim=-1) - computed).abs()
    assert frame.at["prerot", "score"] == pytest.approx(float(difference.max()), rel=1e-12)


def full_trace(results):
    """Trace the full path of the one configuration, on tokens put together from the observations."""
    row, rows = next(recorded(results))
    configuration = Configuration(**{name: row[name] for name in Configuration().columns()})
    weights = load_weights(configuration.model(), "random", 1.0, (0,))
    prompt = torch.from_numpy(np.random.default_rng([0, 0, *b"prompt"]).integers(8, size=3))
    tokens = torch.cat([prompt, torch.from_numpy(rows["forced_token"][1:])])
    return Engine(configuration.model(), weights).trace(tokens[None, None])


@pytest.mark.parametrize(
    ("name", "passes"),
    [
        ("prefill", [0]),
        ("one-step", [1]),
        ("every-step", [8]),
        ("last-step", [8]),
        ("argmax-one-step", [1]),
        ("argmax-every-step", [8]),
        ("allclose", [8]),
        ("text-8", [7]),
        ("logprob-8", [7]),
        ("kv-compare", [8]),
    ],
)
def test_the_cost_is_what_a_full_pass_up_to_the_step_it_needs_feeds(small, name, passes):
    tokens = torch.zeros(1, 2, 3 + 8)  # two rows, prompt of 3, 8 steps
    fed = sum(tokens[..., : 3 + step].numel() for step in passes)
    assert set(judge(small, [find_detector(name)]).frame["cost_tokens"]) == {fed}


def test_a_cost_ends_where_the_run_ends(edges):
    cases = edges["no step"]
    assert {name: scores(cases, find_detector(name))["cost_tokens"].max() for name in ("one-step", "text-8")} == {
        "one-step": 2.0,
        "text-8": 2.0,
    }


@pytest.mark.parametrize(
    ("name", "which"),
    [("prefill", "empty prompt"), ("one-step", "no step"), ("argmax-one-step", "no step")],
)
def test_a_detector_whose_step_does_not_exist_has_seen_nothing(edges, name, which):
    verdicts = scores(edges[which], find_detector(name))
    assert set(verdicts["score"]) == {0.0}
    assert not verdicts["flag"].any()


def test_every_shipped_detector_takes_an_empty_prompt_and_a_run_without_steps(edges):
    for results in edges.values():
        verdicts = scores(results, *shipped_detectors())
        assert not verdicts["crashed"].any()
    assert scores(edges["empty prompt"], find_detector("every-step"))["flag"].any()


def made_case(cached, full, needs="logits", **layout):
    """A case of one sequence (or what ``layout`` says) with these logits ``[N, V]``."""
    count = len(cached)
    columns = {
        "logits_cached": np.array(cached, float),
        "logits_full": np.array(full, float),
        "argmax_cached": np.argmax(cached, axis=1),
        "argmax_full": np.argmax(full, axis=1),
        "request": np.zeros(count, int),
        "row": np.zeros(count, int),
        "step": np.arange(count),
        "emitted": np.ones(count, bool),
    }
    columns |= {name: np.array(values) for name, values in layout.items()}
    return Case(columns.__getitem__, np.arange(count), Configuration(), needs)


def one_hot(tokens):
    return np.eye(4)[list(tokens)]


@pytest.mark.parametrize(
    ("cached", "full", "score"),
    [
        ([0, 1, 2, 3], [0, 1, 2, 3], 0.0),
        ([0, 1, 2, 3], [1, 1, 2, 3], 1.0),
        ([0, 1, 2, 3], [0, 1, 0, 3], 0.5),
        ([0] * 9, [0] * 8 + [1], 0.0),
        ([0] * 9, [0] * 7 + [1] + [0], 1 / 8),
        ([0] * 7, [0] * 7, 0.0),
    ],
)
def test_text_8_is_the_share_after_the_agreeing_prefix(cached, full, score):
    assert float(find_detector("text-8")(made_case(one_hot(cached), one_hot(full), "text"))) == score


def test_text_8_takes_the_worst_sequence():
    case = made_case(one_hot([0, 0, 0, 0]), one_hot([0, 0, 0, 1]), "text", row=[0, 0, 1, 1], step=[0, 1, 0, 1])
    assert float(find_detector("text-8")(case)) == 0.5


def test_a_rejected_draft_is_in_no_text_but_every_step_sees_it():
    case = made_case(one_hot([0, 0, 0]), one_hot([0, 1, 0]), emitted=[True, False, True])
    assert float(find_detector("text-8")(case)) == float(find_detector("logprob-8")(case)) == 0.0
    assert float(find_detector("every-step")(case)) == 1.0


def test_last_step_is_the_last_of_each_sequence():
    case = made_case(np.zeros((5, 4)), np.diag([9.0, 2, 7, 7, 3])[:, 1:], request=[0, 0, 1, 1, 1], step=[0, 1, 0, 1, 2])
    assert float(find_detector("last-step")(case)) == 3.0


@pytest.mark.parametrize(
    ("cached", "full", "flag"),
    [
        ([1.0, 0.0], [1.0, 0.0], False),
        ([1.0, 0.0], [1.009, 0.0], False),
        ([1.0, 0.0], [1.011, 0.0], True),
        ([1.0, 0.9999], [1.0, 1.0001], True),
    ],
)
def test_argmax_rules_flag_another_argmax_or_a_hundredth(cached, full, flag):
    for name, step in (("argmax-every-step", [0]), ("argmax-one-step", [1])):
        score, found = find_detector(name)(made_case([cached], [full], step=step))
        assert bool(found) == flag
        assert float(score) == pytest.approx(np.abs(np.subtract(cached, full)).max())


@pytest.mark.parametrize(("difference", "flag"), [(0.9e-5, False), (1.01e-5, False), (2.1e-5, True)])
def test_allclose_is_the_rule_of_numpy_with_both_tolerances_at_1e_5(difference, flag):
    cached, full = [[1.0 + difference, 0.0]], [[1.0, 0.0]]
    score = float(find_detector("allclose")(made_case(cached, full)))
    assert (score > find_detector("allclose").threshold) == flag
    assert flag == (not np.allclose(cached, full, rtol=1e-5, atol=1e-5))
