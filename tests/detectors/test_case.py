"""The view of a case, against the rows in the files; and what it keeps from a detector."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import log_softmax

from mutkv.configuration import Configuration
from mutkv.detectors import detector, find_detector, judge

from .datasets import recorded, scores, seen


@pytest.mark.parametrize("path", ["cached", "full"])
def test_logits_are_the_recorded_ones_in_float64(small, path):
    views = seen(small, lambda case: getattr(case, path).logits)
    for view, (_, rows) in zip(views, recorded(small), strict=True):
        assert view.dtype == torch.float64
        assert np.array_equal(view.numpy(), rows[f"logits_{path}"])


@pytest.mark.parametrize("path", ["cached", "full"])
def test_tokens_are_the_lowest_argmax_of_the_logits(small, path):
    views = seen(small, lambda case: getattr(case, path).tokens, needs="text")
    for view, (_, rows) in zip(views, recorded(small), strict=True):
        assert view.tolist() == rows[f"logits_{path}"].argmax(axis=1).tolist()  # numpy takes the first maximum


@pytest.mark.parametrize("path", ["cached", "full"])
def test_logprobs_are_those_of_scipy(small, path):
    views = seen(small, lambda case: getattr(case, path).logprobs, needs="logprobs")
    for view, (_, rows) in zip(views, recorded(small), strict=True):
        np.testing.assert_allclose(view.numpy(), log_softmax(rows[f"logits_{path}"], axis=1), rtol=1e-12)


@pytest.mark.parametrize("name", ["request", "row", "step", "position", "emitted", "forced_token"])
def test_places_are_the_recorded_ones(small, name):
    views = seen(small, lambda case: getattr(case, name), needs="text")
    for view, (_, rows) in zip(views, recorded(small), strict=True):
        assert view.tolist() == rows[name].tolist()


def test_observations_are_ordered_by_request_row_and_step(small):
    for request, row, step in seen(small, lambda case: (case.request, case.row, case.step)):
        triples = list(zip(request.tolist(), row.tolist(), step.tolist(), strict=True))
        assert triples == sorted(triples)


def test_the_configuration_is_that_of_the_case(small):
    found = seen(small, lambda case: case.config)
    assert all(isinstance(config, Configuration) for config in found)
    assert [config.identity() for config in found] == [row["configuration_id"] for row, _ in recorded(small)]


@pytest.mark.parametrize(
    ("wanted", "keep"),
    [
        ({"step": 1}, lambda f: f.step == 1),
        ({"step": range(3)}, lambda f: f.step < 3),
        ({"step": [0, 5]}, lambda f: f.step.isin([0, 5])),
        ({"step": torch.tensor(4)}, lambda f: f.step == 4),
        ({"row": 1}, lambda f: f.row == 1),
        ({"request": 0, "row": 0, "step": {2, 3}}, lambda f: (f.row == 0) & f.step.isin([2, 3])),
        ({"position": 4, "emitted": True}, lambda f: f.position == 4),
        ({"emitted": False}, lambda f: ~f.emitted),
        ({"step": 99}, lambda f: f.step == 99),
    ],
)
def test_at_keeps_just_these_observations(small, wanted, keep):
    views = seen(small, lambda case: (case.at(**wanted).cached.logits, case.at(**wanted).step))
    for (logits, steps), (_, rows) in zip(views, recorded(small), strict=True):
        frame = pd.DataFrame({name: rows[name] for name in ("request", "row", "step", "position", "emitted")})
        kept = keep(frame).to_numpy()
        assert np.array_equal(logits.numpy(), rows["logits_cached"][kept])
        assert steps.tolist() == rows["step"][kept].tolist()


def test_last_keeps_the_last_observation_of_each_row(small):
    for view, (_, rows) in zip(seen(small, lambda case: case.last().position), recorded(small), strict=True):
        frame = pd.DataFrame({name: rows[name] for name in ("request", "row", "position")})
        assert view.tolist() == frame.groupby(["request", "row"])["position"].last().tolist()


def test_sequences_are_the_rows_one_by_one(small):
    for views in seen(small, lambda case: [view.row.tolist() for view in case.sequences()]):
        assert views == [[0] * 9, [1] * 9]


def test_a_batch_is_its_cases_stacked(small):
    shapes = ("request", "row", "step", "position", "emitted", "forced_token")

    def everything(case):
        part = case.at(step=range(1, 4), row=1)
        return [*(getattr(part, name) for name in shapes), part.cached.logits, part.full.logprobs, part.last().step]

    alone, together = seen(small, everything), seen(small, everything, batched=True)
    for number, stacked in enumerate(zip(*together, strict=True)):
        assert torch.equal(torch.cat(stacked), torch.stack([views[number] for views in alone]))


def test_a_batch_has_the_configuration_of_its_group(small):
    assert {config.seed for config in seen(small, lambda case: case.config, batched=True)} == {0}


@pytest.mark.parametrize(
    ("needs", "hidden"),
    [
        ("text", {"logprobs": "logprobs", "logits": "logits", "keys": "kv", "values": "kv", "hidden": "hidden"}),
        ("logprobs", {"logits": "logits", "keys": "kv"}),
        ("logits", {"keys": "kv", "values": "kv", "hidden": "hidden"}),
        ("kv", {"hidden": "hidden"}),
        ("hidden", {"keys": "kv"}),
    ],
)
def test_what_was_not_asked_for_is_refused_with_the_fix(single, needs, hidden):
    def look(case):
        for path in (case.cached, case.at(step=1).full):
            for name, fix in hidden.items():
                with pytest.raises(AttributeError) as caught:
                    getattr(path, name)
                text = f"a detector with needs='{needs}' sees no {name}: declare needs='{fix}'"
                assert str(caught.value) == text

    assert seen(single, look, needs=needs)


def test_the_truth_is_nowhere_in_a_view(single):
    truth = ("floor", "observable", "output_changed", "clean_argmax", "clean_margin", "mutant", "kind", "case_id")

    def look(case):
        for holder in (case, case.cached, case.full, case.config):
            assert not any(hasattr(holder, name) for name in truth)
        for name in truth:
            with pytest.raises(AttributeError, match="does not see the column"):
                case._column(name)

    assert seen(single, look)


def test_a_detector_that_writes_into_its_tensors_harms_nobody(small):
    def vandal(case):
        for path in (case.cached, case.full):
            for tensor in (path.logits, path.tokens, path.logprobs):
                tensor.zero_()
        case.step.fill_(7)
        case.cached.logits.add_(1)
        return (case.cached.logits - case.full.logits).abs().max()

    files = {path: path.read_bytes() for path in small.folder.rglob("*.parquet")}
    honest = [find_detector("every-step"), find_detector("text-8")]
    before = scores(small, *honest)["score"]
    after = scores(small, detector(vandal), detector(name="again")(vandal), *honest)["score"]
    assert after[["every-step", "text-8"]].equals(before)
    assert after["vandal"].equals(before["every-step"])  # nor itself: a tensor is new each time
    assert files == {path: path.read_bytes() for path in small.folder.rglob("*.parquet")}


def test_a_batched_vandal_harms_nobody(small):
    def vandal(cases):
        cases.cached.logits.zero_()
        cases.full.tokens.zero_()
        return torch.ones(len(cases.step))

    before = scores(small, find_detector("every-step"))["score"]
    after = judge(small, [detector(name="vandal", batched=True)(vandal), find_detector("every-step")]).frame
    assert after.set_index(["detector", "case_id"]).loc[["every-step"], "score"].equals(before)
