"""Sessions: what is stored, how they branch and resume, and what they refuse."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mutkv.configuration import ModelConfig
from mutkv.errors import Unsupported
from mutkv.protocol import Engine as EngineProtocol
from mutkv.protocol import Session as SessionProtocol

from .engines import chunk_lists, feed, make_engine, make_tokens, structures

CONFIG = ModelConfig(depth=2, heads=2, kv_heads=1)


def test_engine_and_session_speak_the_protocol():
    engine = make_engine(CONFIG)
    assert isinstance(engine, EngineProtocol)
    assert isinstance(engine.open(), SessionProtocol)


@settings(max_examples=25)
@given(structures(), chunk_lists, st.integers(1, 2))
def test_length_counts_tokens_and_stored_rows_have_the_promised_shape(config, chunks, batch):
    session = make_engine(config, (0, 1)).open(batch)
    tokens = make_tokens(config, 2, batch, sum(chunks))
    fed = 0
    assert session.length == 0
    for part in tokens.split(chunks, dim=-1):
        assert session.extend(part).shape == (2, batch, part.shape[-1], config.vocab)
        fed += part.shape[-1]
        assert session.length == fed
        assert session.hit_tokens == 0
        shape = (2, batch, fed, config.kv_heads, config.head_dim)
        assert [[rows.shape for rows in layer] for layer in session.stored()] == [[shape, shape]] * config.depth


@settings(max_examples=40)
@given(structures(), chunk_lists, chunk_lists, chunk_lists)
def test_a_fork_and_its_origin_continue_as_if_alone(config, before, left, right):
    engine = make_engine(config, (0, 1))
    tokens = [make_tokens(config, 2, 1, sum(chunks), seed) for seed, chunks in enumerate((before, left, right))]
    origin = engine.open()
    feed(origin, tokens[0], before)
    fork = origin.fork()
    mixed = [feed(origin, tokens[1], left), feed(fork, tokens[2], right)]
    for session, continued, logits in zip((origin, fork), tokens[1:], mixed, strict=True):
        whole = torch.cat([tokens[0], continued], dim=-1)
        trace = engine.trace(whole)
        assert session.length == whole.shape[-1]
        assert torch.equal(logits, trace.logits[:, :, sum(before) :])
        assert all(torch.equal(keys, full) for (keys, _), full in zip(session.stored(), trace.keys, strict=True))


@settings(max_examples=40)
@given(structures(), chunk_lists, chunk_lists)
def test_a_saved_state_continues_in_another_session_however_often(config, before, after):
    engine = make_engine(config, (0, 1))
    first, second = make_tokens(config, 2, 1, sum(before)), make_tokens(config, 2, 1, sum(after), 1)
    session = engine.open()
    feed(session, first, before)
    state = session.save()
    straight = feed(session, second, after)
    for _ in range(2):  # the state is not used up by the sessions that continued from it
        other = engine.open()
        other.load(state)
        assert other.length == first.shape[-1]
        assert torch.equal(feed(other, second, after), straight)


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [("shift", (1,))],
)
def test_what_no_configuration_has_is_refused_by_name(operation, arguments):
    session = make_engine(CONFIG).open()
    session.extend(make_tokens(CONFIG, 1, 1, 4))
    with pytest.raises(Unsupported, match=operation):
        getattr(session, operation)(*arguments)
    assert session.length == 4


@pytest.mark.parametrize("cache", [{"block": 2}, {"window": 3, "ring": True}])
def test_caches_without_pads_refuse_them(cache):
    engine, tokens = make_engine(replace(CONFIG, **cache)), make_tokens(CONFIG, 1, 1, 4)
    session = engine.open()
    with pytest.raises(Unsupported, match="padding"):
        session.extend(tokens, pad=torch.tensor([1]))
    assert session.length == 0


def test_adapters_and_media_that_an_engine_does_not_have_are_refused_and_not_ignored():
    engine, tokens = make_engine(CONFIG), make_tokens(CONFIG, 1, 1, 4)
    for call in (engine.full, engine.trace, lambda _, **extra: engine.open(**extra)):
        for extra, name in (({"adapter": 0}, "adapter 0"), ({"media": 1}, "medium 1")):
            with pytest.raises(Unsupported, match=f"no {name} in this configuration: it has 0"):
                call(tokens, **extra)
