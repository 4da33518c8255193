"""Under exact arithmetic the cached path is the full path, bit for bit; adding in another order is not."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mutkv.configuration import ModelConfig
from mutkv.kernels import Arithmetic

from .engines import FORMATS, ORDERS, chunk_lists, feed, make_engine, make_tokens, structures

replicas_of = st.sampled_from([(0,), (4, 5, 6)])
batches = st.integers(1, 2)


def assert_cached_is_full(config, seeds, batch, chunks, draw):
    engine = make_engine(config, seeds)
    tokens = make_tokens(config, len(seeds), batch, sum(chunks), draw)
    session = engine.open(batch)
    cached, trace = feed(session, tokens, chunks), engine.trace(tokens)
    assert (cached.double() - trace.logits.double()).abs().max().item() == 0.0
    assert torch.equal(cached, engine.full(tokens))
    for (keys, values), full_keys, full_values in zip(session.stored(), trace.keys, trace.values, strict=True):
        assert torch.equal(keys, full_keys)
        assert torch.equal(values, full_values)


@settings(max_examples=80)
@given(structures(), replicas_of, batches, chunk_lists, st.integers(0, 2**32))
def test_cached_path_and_stored_rows_equal_the_full_path_bit_for_bit(config, seeds, batch, chunks, draw):
    assert_cached_is_full(config, seeds, batch, chunks, draw)


@settings(max_examples=12)
@given(structures(FORMATS[3:]), replicas_of, batches, st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_cached_path_equals_the_full_path_with_a_bfloat16_accumulator(config, seeds, batch, chunks):
    assert_cached_is_full(config, seeds, batch, chunks, 0)


@pytest.mark.slow
@settings(max_examples=1500)
@given(structures(FORMATS), replicas_of, batches, chunk_lists, st.integers(0, 2**32))
def test_cached_path_equals_the_full_path_on_many_structures(config, seeds, batch, chunks, draw):
    assert_cached_is_full(config, seeds, batch, chunks, draw)


@pytest.mark.parametrize("formats", FORMATS[:3])
@pytest.mark.parametrize("orders", [ORDERS, ORDERS[::-1]])
def test_decoding_in_another_order_deviates_and_in_the_same_order_does_not(formats, orders):
    worst = {}
    for decode_order in orders:
        config = ModelConfig(heads=3, kv_heads=3, head_dim=10, arithmetic=Arithmetic(*formats, orders[0], decode_order))
        engine = make_engine(config, range(4))
        tokens = make_tokens(config, 4, 1, 12)
        session = engine.open()
        session.extend(tokens[..., :4])  # the prefill is in prefill_order
        decoded = feed(session, tokens[..., 4:], [1] * 8)
        worst[decode_order] = (decoded - engine.full(tokens)[:, :, 4:]).abs().max().item()
    assert worst[orders[0]] == 0.0
    assert worst[orders[1]] > 0.0 or formats[0] == "bfloat16"  # storage may round a double's last bit away


@pytest.mark.parametrize("order", [*ORDERS, "native"])
def test_the_full_path_never_runs_in_the_decode_order(order):
    arithmetic = Arithmetic("float32", "float32", "sequential", order)
    split, plain = (ModelConfig(arithmetic=a) for a in (arithmetic, Arithmetic("float32", "float32")))
    tokens = make_tokens(plain, 1, 1, 9)
    assert torch.equal(make_engine(split).full(tokens), make_engine(plain).full(tokens))
