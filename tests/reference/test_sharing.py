"""What shares a call leaves no trace: replicas, rows of a batch, later tokens; exact arithmetic, bit for bit."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from .engines import FORMATS, chunk_lists, feed, make_engine, make_tokens, structures


def both_paths(engine, tokens, chunks):
    return engine.full(tokens), feed(engine.open(tokens.shape[1]), tokens, chunks)


@settings(max_examples=30)
@given(structures(), chunk_lists)
def test_replicas_are_separate_engines(config, chunks):
    seeds = (3, 0, 11)
    tokens = make_tokens(config, 3, 1, sum(chunks))
    together = both_paths(make_engine(config, seeds), tokens, chunks)
    for r, seed in enumerate(seeds):
        alone = both_paths(make_engine(config, [seed]), tokens[r : r + 1], chunks)
        assert all(torch.equal(part[r : r + 1], one) for part, one in zip(together, alone, strict=True))


@settings(max_examples=30)
@given(structures(), chunk_lists)
def test_rows_of_a_batch_are_rows_alone(config, chunks):
    engine = make_engine(config, (0, 1))
    tokens = make_tokens(config, 2, 3, sum(chunks))
    together = both_paths(engine, tokens, chunks)
    for b in range(3):
        alone = both_paths(engine, tokens[:, b : b + 1], chunks)
        assert all(torch.equal(part[:, b : b + 1], one) for part, one in zip(together, alone, strict=True))


@settings(max_examples=40)
@given(structures(), st.integers(1, 9), st.integers(1, 9))
def test_appending_tokens_changes_no_earlier_logits(config, length, more):
    engine = make_engine(config, (0, 1))
    tokens = make_tokens(config, 2, 1, length + more)
    short, long = engine.trace(tokens[..., :length]), engine.trace(tokens)
    assert torch.equal(long.logits[:, :, :length], short.logits)
    for part in ("hidden", "keys", "values", "attended"):
        for left, right in zip(getattr(long, part), getattr(short, part), strict=True):
            assert torch.equal(left[:, :, :length], right)


@settings(max_examples=20)
@given(structures(FORMATS[:1]), st.integers(2, 8), st.data())
def test_every_token_moves_its_own_logits_and_those_of_later_tokens_that_see_it_and_no_others(config, length, data):
    engine = make_engine(config)
    tokens = make_tokens(config, 1, 1, length)
    place = data.draw(st.integers(0, length - 1))
    other = tokens.clone()
    other[..., place] = (other[..., place] + 1) % config.vocab
    moved = (engine.full(tokens) != engine.full(other)).any(dim=-1).flatten()
    # Each layer carries a token as far as a window reaches, its own place included.
    reach = config.depth * (config.window - 1) + 1 if config.window else length
    assert moved.tolist() == [place <= position < place + reach for position in range(length)]
