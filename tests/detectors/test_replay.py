"""Running a recorded case again gives the same bits, from its row and the plan alone."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from mutkv.detectors import detector, find_detector, inside, judge
from mutkv.errors import UsageError
from mutkv.grid import replay as replays
from mutkv.grid.replay import check_engine, configuration_of, engine_of, recorded_mutant, replay, subject_of
from mutkv.grid.results import Results
from mutkv.mutation.registry import load_mutants
from mutkv.protocol import Engine, Session

from .datasets import EIGHT, make_dataset, recorded, scores

ALL = ("clean", "control", *EIGHT)


def again(results, row):
    configuration = configuration_of(row)
    return replay(subject_of(results, row["mutant"], row["device"]), configuration.group, (configuration.seed,))


def test_a_row_gives_its_configuration_back(small):
    for row, _ in recorded(small):
        assert configuration_of(row).identity() == row["configuration_id"]


@pytest.mark.parametrize("name", ALL)
def test_a_replay_repeats_the_recorded_logits_bit_for_bit(small, name):
    for row, rows in recorded(small):
        if row["mutant"] == name:
            done = again(small, row)
            assert np.array_equal(done.recording.logits[0].numpy(), rows["logits_cached"])
            full = done.traces[0].logits[0][:, 2:].flatten(0, 1)
            assert np.array_equal(full.numpy(), rows["logits_full"])


def test_seeds_replayed_together_are_those_replayed_alone(small):
    for name in ("posoff", "control"):
        rows = [row for row, _ in recorded(small) if row["mutant"] == name and row["depth"] == 2]
        group = configuration_of(rows[0]).group
        together = replay(subject_of(small, name, "cpu"), group, tuple(row["seed"] for row in rows))
        for replica, row in enumerate(rows):
            for stored, alone in zip(together.recording.stored, again(small, row).recording.stored, strict=True):
                assert all(torch.equal(a[replica], b[0]) for a, b in zip(stored, alone, strict=True))


def test_a_control_stores_what_the_full_path_of_the_other_order_computes(single):
    row = next(row for row, _ in recorded(single) if row["mutant"] == "control")
    done = again(single, row)
    other = dataclasses.replace(configuration_of(row), prefill_order="pairwise", decode_order="pairwise")
    trace = engine_of(subject_of(single, "clean", "cpu"), other).trace(done.recording.conversations[0].tokens)
    for (keys, values), full_keys, full_values in zip(done.recording.stored, trace.keys, trace.values, strict=True):
        assert torch.equal(keys, full_keys)
        assert torch.equal(values, full_values)
    mine = [keys for keys, _ in done.recording.stored]
    assert not all(torch.equal(keys, other) for keys, other in zip(mine, done.traces[0].keys, strict=True))


def test_a_mutant_comes_from_the_plan_as_it_was(small):
    for name in EIGHT:
        mutant, shipped = recorded_mutant(small, name), load_mutants()[name]
        assert mutant.model_dump() == shipped.model_dump()
        assert mutant.patch_text == shipped.patch_text
    with pytest.raises(UsageError, match=r"plan.json: unknown mutant 'posof': did you mean posoff"):
        recorded_mutant(small, "posof")


def changed(results, **plan):
    return Results(results.folder, results.manifest, results.plan | plan)


def test_a_mutant_this_version_cannot_read_is_one_line(small):
    spoiled = json.loads(json.dumps(small.plan["mutants"]))
    spoiled["posoff"]["path"] = "sideways"
    with pytest.raises(UsageError, match=r"plan.json: mutant 'posoff': 'path' should be"):
        recorded_mutant(changed(small, mutants=spoiled), "posoff")


def test_results_of_another_engine_are_not_run_again_but_still_scored(small):
    older = changed(small, engine_digest="0" * 20)
    for needs in ("kv", "hidden", "live"):
        with pytest.raises(UsageError, match="recorded with another engine or torch, cases cannot be run again: run"):
            judge(older, [detector(needs=needs, name="mine")(lambda case: 0.0)])
    with pytest.raises(UsageError):
        check_engine(older)
    assert len(judge(older, [find_detector("every-step")]).frame) == len(small.cases)


def test_results_of_a_device_that_is_not_here_are_refused(small, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match="recorded on cuda, which is not on this machine: judge there, or use"):
        subject_of(small, "posoff", "cuda")


def test_a_mutant_of_the_full_path_is_traced_by_itself(tmp_path):
    recorded_path = make_dataset(tmp_path, ("posoff",), seed=[0, 1], depth=2)
    mutants = json.loads(json.dumps(recorded_path.plan["mutants"]))
    mutants["posoff"] |= {"path": "both", "acts": "always"}
    mutants["posoff"]["patch"]["reference"] = {
        "file": "model.py",
        "line": 'normed = step.kernel.norm(hidden, self.weights[f"layers.{layer}.mlp_norm"])',
        "becomes": "normed = hidden",
    }
    results = changed(recorded_path, mutants=mutants)
    subject = subject_of(results, "posoff", "cpu")
    group = configuration_of(next(recorded(results))[0]).group
    done, clean = replay(subject, group, (0, 1)), replay(subject_of(results, "clean", "cpu"), group, (0, 1))
    assert torch.equal(done.recording.logits, done.traces[0].logits[0:2, 0, 2:])
    assert not torch.equal(done.traces[0].logits, clean.traces[0].logits)


def test_seeds_that_cannot_run_together_are_run_alone(small, monkeypatch):
    together = scores(small, find_detector("kv-compare"))
    calls = []

    def only_one(subject, group, seeds):
        calls.append(seeds)
        if len(seeds) > 1:
            raise RuntimeError("shapes differ")
        return replay(subject, group, seeds)

    monkeypatch.setattr(inside, "replay", only_one)
    assert scores(small, find_detector("kv-compare")).equals(together)
    assert {len(seeds) for seeds in calls} == {1, 2}


def test_a_case_that_runs_no_more_has_crashed(small, monkeypatch):
    def broken(subject, group, seeds):
        if subject.name == "tril" and 1 in seeds:
            raise RuntimeError("no more")
        return replay(subject, group, seeds)

    monkeypatch.setattr(inside, "replay", broken)
    frame = judge(small, [find_detector("kv-compare")]).frame
    assert (frame["crashed"] == ((frame["mutant"] == "tril") & (frame["seed"] == 1))).all()


def test_seeds_of_a_group_run_once_for_all_detectors_that_look_inside(small, monkeypatch):
    calls = []
    monkeypatch.setattr(inside, "replay", lambda *asked: calls.append(asked) or replay(*asked))
    look = detector(needs="hidden", name="look")(lambda case: 0.0)
    judge(small, [find_detector("kv-compare"), look, find_detector("one-step")])
    assert len(calls) == len(ALL) * 2  # depths
    assert all(seeds == (0, 1) for _, _, seeds in calls)


def test_a_detector_looks_into_one_row_at_a_time_and_the_worst_counts(small):
    shown = []

    def look(case):
        shown.append((case.request.unique().tolist(), case.row.unique().tolist(), len(case.step)))
        assert [keys.shape for keys in case.full.keys] == [(11, 2, 4)] * case.config.depth
        assert case.cached.values[0].dtype == torch.float64
        row = int(case.row[0])
        return float(row), row == 0

    verdicts = scores(small, detector(needs="kv")(look))
    assert shown == [([0], [0], 9), ([0], [1], 9)] * len(small.cases)
    assert set(verdicts["score"]) == {1.0}
    assert verdicts["flag"].all()


def expected_inside(results, needs):
    """Yield for each case of seed 1, row by row, what its replay holds there."""
    for row, _ in recorded(results):
        if row["seed"] == 1:
            done = again(results, row)
            layers = [part for pair in done.recording.stored for part in pair]
            if needs == "hidden":
                traces = (trace.hidden for trace in done.recording.traces)
                layers = [*(torch.cat(parts, dim=2) for parts in zip(*traces, strict=True)), *done.traces[0].hidden]
            yield from ([layer[0, b] for layer in layers] for b in range(2))


@pytest.mark.parametrize("needs", ["kv", "hidden"])
def test_stored_rows_and_hidden_states_are_those_of_the_row(small, needs):
    found = []

    def look(case):
        if case.config.seed == 1:
            stored = zip(case.cached.keys, case.cached.values, strict=True) if needs == "kv" else ()
            hidden = (*case.cached.hidden, *case.full.hidden) if needs == "hidden" else ()
            found.append([*(part for pair in stored for part in pair), *hidden])
        return 0.0

    scores(small, detector(needs=needs)(look))
    for mine, theirs in zip(found, expected_inside(small, needs), strict=True):
        assert len(mine) == len(theirs)
        assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))


def test_hidden_states_of_a_clean_engine_agree_and_those_of_every_mutant_do_not(small):
    def apart(case):
        return max((a - b).abs().max() for a, b in zip(case.cached.hidden, case.full.hidden, strict=True))

    share = scores(small, detector(needs="hidden")(apart)).groupby("mutant")["flag"].mean()
    assert share["clean"] == 0
    assert (share.drop("clean") == 1).all()


def test_a_vandal_inside_an_engine_harms_nobody(small):
    def vandal(case):
        for path in (case.cached, case.full):
            for tensor in (*path.keys, *path.values):
                tensor.zero_()
        return 0.0

    before = scores(small, find_detector("kv-compare"))["score"]
    after = scores(small, detector(needs="kv")(vandal), find_detector("kv-compare"))["score"]
    assert after[["kv-compare"]].equals(before)


def test_engines_without_hidden_states_are_not_applicable(small, monkeypatch):
    def bare(subject, group, seeds):
        done = replay(subject, group, seeds)
        return dataclasses.replace(done, recording=dataclasses.replace(done.recording, traces=()))

    monkeypatch.setattr(inside, "replay", bare)
    verdicts = judge(small, [detector(needs="hidden", name="look")(lambda case: 0.0)])
    assert len(verdicts.frame) == 0
    assert "is not applicable on" in verdicts.warnings[0]


def live_engine(results, name):
    configuration = configuration_of(next(recorded(results))[0])
    return engine_of(subject_of(results, name, "cpu"), configuration)


@pytest.mark.parametrize("name", ["clean", "control", "posoff"])
def test_an_engine_to_probe_speaks_the_protocol(single, name):
    engine = live_engine(single, name)
    assert isinstance(engine, Engine)
    assert isinstance(engine.open(2), Session)


def test_a_control_session_is_a_recompute_whatever_is_done_to_it(single):
    engine = live_engine(single, "control")
    tokens = torch.arange(12).remainder(8).reshape(1, 2, 6)
    session = engine.open(2)
    first = session.extend(tokens[..., :4])
    assert torch.equal(first, engine.other.full(tokens[..., :4]))
    saved, fork = session.save(), session.fork()
    assert torch.equal(session.extend(tokens[..., 4:]), engine.other.full(tokens)[:, :, 4:])
    assert (session.length, fork.length) == (6, 4)
    session.crop(5)
    session.reorder(torch.tensor([1, 1]))
    session.keep(torch.tensor([0]))
    session.shift(1)
    expected = engine.other.trace(tokens[:, 1:, 1:5])
    for (keys, values), full_keys, full_values in zip(session.stored(), expected.keys, expected.values, strict=True):
        assert torch.equal(keys, full_keys)
        assert torch.equal(values, full_values)
    session.reset()
    assert session.length == session.hit_tokens == 0
    session.load(saved)
    assert torch.equal(session.extend(tokens[..., 4:5]), engine.other.full(tokens[..., :5])[:, :, 4:])


def test_grids_know_nothing_of_detectors():
    for path in Path(replays.__file__).parent.glob("*.py"):
        assert "import mutkv.detectors" not in path.read_text()
        assert "from mutkv.detectors" not in path.read_text()
