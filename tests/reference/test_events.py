"""Any sequence of events leaves a session that continues as a full recompute of its tokens would, bit for bit."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mutkv.configuration import ModelConfig
from mutkv.errors import UsageError

from .engines import FORMATS, make_engine, make_tokens, structures

EVENTS = ("extend", "crop", "crop by none", "reorder", "reorder by replica", "keep", "reset", "fork", "save", "load")
# Something to forget, to reorder and to come back to stands at the beginning of every list.
event_lists = st.lists(st.sampled_from(EVENTS), min_size=2, max_size=8).map(lambda events: ["extend", "save", *events])
LONGEST = 40


class Twin:
    """A session beside the tokens that it should hold, ``[R, B, length]``."""

    def __init__(self, engine, batch, draw):
        self.engine, self.draw = engine, draw
        self.session = engine.open(batch)
        self.tokens = torch.empty(engine.replicas, batch, 0, dtype=torch.int64)
        self.aside = []  # sessions that were left, with their tokens: they must stay as they were
        self.states = []  # what was saved, with its tokens

    def number(self, low, high):
        return self.draw(st.integers(low, high))

    def extend(self):
        new = make_tokens(
            self.engine.config, self.engine.replicas, self.tokens.shape[1], self.number(1, 4), self.number(0, 99)
        )
        if self.tokens.shape[-1] + new.shape[-1] > LONGEST:
            return
        self.tokens = torch.cat([self.tokens, new], dim=-1)
        logits = self.session.extend(new)
        assert torch.equal(logits, self.engine.full(self.tokens)[:, :, -new.shape[-1] :])

    def crop(self):
        self.crop_to(self.number(0, self.tokens.shape[-1]))

    def crop_by_none(self):
        self.crop_to(self.tokens.shape[-1])

    def crop_to(self, length):
        self.session.crop(length)
        self.tokens = self.tokens[..., :length]

    def reset(self):
        self.session.reset()
        self.tokens = self.tokens[..., :0]

    def parents(self, count):
        return torch.tensor([self.number(0, self.tokens.shape[1] - 1) for _ in range(count)])

    def reorder(self):
        parents = self.parents(self.tokens.shape[1])
        self.session.reorder(parents)
        self.tokens = self.tokens[:, parents]

    def reorder_by_replica(self):
        parents = torch.stack([self.parents(self.tokens.shape[1]) for _ in range(self.engine.replicas)])
        self.session.reorder(parents)
        self.tokens = torch.stack([rows[own] for rows, own in zip(self.tokens, parents, strict=True)])

    def keep(self):
        rows = torch.tensor(sorted({self.number(0, self.tokens.shape[1] - 1) for _ in range(2)}))
        self.session.keep(rows)
        self.tokens = self.tokens[:, rows]

    def fork(self):
        self.aside.append((self.session, self.tokens))
        self.session = self.session.fork()

    def save(self):
        self.states.append((self.session.save(), self.tokens))

    def load(self):
        self.aside.append((self.session, self.tokens))
        state, self.tokens = self.states[self.number(0, len(self.states) - 1)]
        self.session = self.engine.open(self.tokens.shape[1])
        self.session.load(state)

    def check(self, session, tokens):
        assert session.length == tokens.shape[-1]
        if session.length:
            trace = self.engine.trace(tokens)
            for stored, *full in zip(session.stored(), trace.keys, trace.values, strict=True):
                assert all(torch.equal(left, right) for left, right in zip(stored, full, strict=True))


def run(config, batch, events, draw):
    twin = Twin(make_engine(config, (0, 1)), batch, draw)
    for event in events:
        getattr(twin, event.replace(" ", "_"))()
        for session, tokens in (*twin.aside, (twin.session, twin.tokens)):
            twin.check(session, tokens)
    for session, tokens in (*twin.aside, (twin.session, twin.tokens)):
        twin.session, twin.tokens = session, tokens
        twin.extend()


@pytest.mark.parametrize("capacity", [0, LONGEST])
@settings(max_examples=60)
@given(structures(), st.integers(2, 3), event_lists, st.data())
def test_after_any_events_every_session_holds_and_continues_its_own_tokens(capacity, config, batch, events, data):
    run(replace(config, capacity=capacity), batch, events, data.draw)


@pytest.mark.slow
@settings(max_examples=1500)
@given(structures(FORMATS), st.integers(1, 3), event_lists, st.data())
def test_after_many_events_every_session_holds_and_continues_its_own_tokens(config, batch, events, data):
    run(config, batch, events, data.draw)


@pytest.mark.parametrize("capacity", [0, 8])
@pytest.mark.parametrize("length", [-1, 5])
def test_a_session_is_cropped_to_what_it_holds(capacity, length):
    session = make_engine(ModelConfig(capacity=capacity)).open()
    session.extend(make_tokens(ModelConfig(), 1, 1, 4))
    with pytest.raises(UsageError, match=f"cannot crop to {length} tokens: the session holds 4"):
        session.crop(length)


@pytest.mark.parametrize("capacity", [0, 8])
def test_a_saved_state_is_not_changed_by_a_session_that_goes_back_and_on(capacity):
    engine = make_engine(ModelConfig(capacity=capacity))
    first, second = make_tokens(engine.config, 1, 1, 4), make_tokens(engine.config, 1, 1, 4, 1)
    session, other = engine.open(), engine.open()
    session.extend(first)
    state = session.save()
    session.crop(1)
    session.extend(second)
    other.load(state)
    assert torch.equal(other.stored()[0][0], engine.trace(first).keys[0])


def test_after_a_reset_the_next_prompt_is_the_prompt():
    session = make_engine(ModelConfig()).open()
    for length in (4, 3):
        session.extend(make_tokens(ModelConfig(), 1, 1, length))
        assert session.prompt_length == length
        session.extend(make_tokens(ModelConfig(), 1, 1, 1))
        assert session.prompt_length == length
        session.reset()


def test_a_full_buffer_refuses_more_and_keeps_what_it_holds():
    config = ModelConfig(capacity=5)
    engine, tokens = make_engine(config), make_tokens(config, 1, 1, 6)
    session = engine.open()
    session.extend(tokens[..., :5])
    with pytest.raises(UsageError, match="a cache of capacity 5 cannot hold 6 tokens: use a larger one"):
        session.extend(tokens[..., 5:])
    assert torch.equal(session.stored()[0][0], engine.trace(tokens[..., :5]).keys[0])


def test_what_was_not_written_is_poison_that_would_be_seen():
    config = ModelConfig(capacity=5)
    session = make_engine(config).open()
    session.extend(make_tokens(config, 1, 1, 2))
    unwritten = session.cache.buffers[0][:, :, :, 2:]
    assert unwritten.isfinite().all()
    assert unwritten.abs().median() > 100
