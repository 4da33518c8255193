"""Live checkers: an engine each, what they say, and what they cost."""

import pytest
import torch

from mutkv.detectors import detector, find_detector, inside, judge, verdict
from mutkv.detectors.live import MeteredEngine, tokens_fed
from mutkv.errors import Unsupported
from mutkv.grid.replay import Subject, configuration_of, engine_of

from .datasets import flagged, recorded, scores


def script(results):
    """Return prompt and forced tokens of a dataset with one configuration, ``[1, 1, T]``."""
    row, rows = next(recorded(results))
    engine = engine_of(Subject("clean", None, "cpu"), configuration_of(row))
    tail = torch.from_numpy(rows["forced_token"])[None, None]
    for first in range(64):  # the two tokens before the last of the prompt, by trial
        tokens = torch.cat([torch.tensor([[[first // 8, first % 8]]]), tail], dim=-1)
        if torch.equal(engine.full(tokens)[0, 0, 2:], torch.from_numpy(rows["logits_full"])):
            return tokens
    raise AssertionError("no prompt gives the recorded logits")


def test_a_checker_that_replays_the_script_finds_what_every_step_found(single):
    tokens = script(single)

    def probe(engine):
        session = engine.open()
        steps = [session.extend(tokens[..., :3]), *(session.extend(tokens[..., k : k + 1]) for k in range(3, 11))]
        return (torch.cat(steps, dim=2) - engine.full(tokens))[:, :, 2:].abs().max()

    found = scores(single, detector(needs="live")(probe), find_detector("every-step"))["score"]
    assert found["probe"].equals(found["every-step"])
    assert (found["probe"] > 0).sum() == 9  # eight mutants and the control


def test_a_checker_is_called_once_per_case_on_an_engine_of_one_replica(small):
    engines = []
    scores(small, detector(needs="live", name="look")(engines.append))
    assert len(engines) == len(small.cases)
    assert len({id(engine) for engine in engines}) == len(engines)
    assert engines[0].open(3).extend(torch.zeros(1, 3, 2, dtype=torch.int64)).shape == (1, 3, 2, 8)
    assert {engine.config.depth for engine in engines} == {1, 2}


def test_nothing_returned_is_score_zero(single):
    verdicts = scores(single, detector(needs="live", name="look")(lambda engine: None))
    assert set(verdicts["score"]) == {0.0}
    assert not verdicts["flag"].any()


def test_a_failed_assertion_is_a_flag_with_score_one(single):
    def check(engine):
        tokens = torch.arange(7)[None, None]
        session = engine.open()
        session.extend(tokens[..., :5])
        torch.testing.assert_close(session.extend(tokens[..., 5:6])[0, 0, 0], engine.full(tokens[..., :6])[0, 0, 5])

    check_one = detector(needs="live")(check)
    verdicts = judge(single, [check_one])
    assert verdicts.warnings == ()
    assert not verdicts.frame["crashed"].any()
    assert set(verdicts.frame.loc[verdicts.frame["flag"], "score"]) == {1.0}
    assert set(verdicts.frame.loc[~verdicts.frame["flag"], "score"]) == {0.0}
    found = flagged(single, check_one)
    assert {name for name, share in found.items() if share} == {"posoff", "poszero", "prerot", "stale", "tril"}


def test_an_assertion_is_a_flag_only_from_a_live_checker(single):
    def check(case):
        assert False, "no"  # noqa: B011, PT015

    verdicts = judge(single, [detector(check)])
    assert verdicts.frame["crashed"].all()
    assert not verdicts.frame["flag"].any()


@pytest.mark.parametrize("raised", [ValueError("bad"), SystemExit(1), verdict.MalformedError("bad")])
def test_any_other_exception_has_crashed(single, raised):
    def check(engine):
        engine.full(torch.zeros(1, 1, 3, dtype=torch.int64))
        raise raised

    verdicts = judge(single, [detector(needs="live")(check)])
    assert verdicts.frame["crashed"].all()
    assert not verdicts.frame["flag"].any()
    assert set(verdicts.frame["cost_tokens"]) == {3.0}
    assert len(verdicts.warnings) == 1


def test_a_score_and_a_flag_of_its_own_are_honoured(single):
    verdicts = scores(single, detector(needs="live", name="look", threshold=0.5)(lambda engine: (0.25, True)))
    assert set(verdicts["score"]) == {0.25}
    assert verdicts["flag"].all()


def test_what_the_engine_cannot_do_is_not_applicable(single):
    verdicts = judge(single, [detector(needs="live", name="look")(lambda engine: engine.open(pad=1) or unsupported())])
    assert verdicts.frame["crashed"].all()  # open() takes no pad
    verdicts = judge(single, [detector(needs="live", name="look")(lambda engine: unsupported())])
    assert len(verdicts.frame) == 0
    assert "not applicable on 10 of 10 cases, first: not here" in verdicts.warnings[0]


def unsupported():
    raise Unsupported("not here")


def test_a_checker_that_never_ends_has_crashed(single, monkeypatch):
    monkeypatch.setattr(verdict, "LIVE_SECONDS", 0.05)

    def loop(engine):
        while True:
            pass

    verdicts = judge(single, [detector(needs="live")(loop)])
    assert verdicts.frame["crashed"].all()
    assert "first: CaseTimeout: no result within 0.05 s" in verdicts.warnings[0]


def test_every_token_that_is_fed_is_counted_and_nothing_else(single):
    def probe(engine):
        tokens = torch.zeros(1, 2, 6, dtype=torch.int64)
        engine.full(tokens)  # 12
        engine.trace(tokens[..., :5])  # 10
        session = engine.open(batch=2)
        session.extend(tokens[..., :3])  # 6
        other = session.fork()
        other.extend(tokens[..., :1])  # 2
        other.fork().extend(tokens[..., :2])  # 4
        assert (session.length, other.length, session.hit_tokens) == (3, 4, 0)
        session.stored()
        session.load(session.save())

    assert set(scores(single, detector(needs="live", cost=lambda c: 7)(probe))["cost_tokens"]) == {34.0}


def test_a_metered_engine_gives_what_the_engine_gives(single):
    engine = engine_of(Subject("clean", None, "cpu"), configuration_of(next(recorded(single))[0]))
    metered = MeteredEngine(engine)
    tokens = torch.arange(6)[None, None]
    session, plain = metered.open(), engine.open()
    assert tokens_fed(metered) == 0
    assert torch.equal(session.extend(tokens), plain.extend(tokens))
    assert torch.equal(metered.full(tokens), engine.full(tokens))
    assert torch.equal(metered.trace(tokens).keys[1], engine.trace(tokens).keys[1])
    assert torch.equal(session.stored()[1][0], plain.stored()[1][0])
    assert metered.config == engine.config
    assert tokens_fed(metered) == 18


def test_a_live_checker_needs_no_replay(single, monkeypatch):
    monkeypatch.setattr(inside, "replay", None)
    assert len(scores(single, detector(needs="live", name="look")(lambda engine: None))) == 10
