"""What each script does, told by the tokens it fed and the places it observed."""

from dataclasses import replace
from itertools import product

import pytest
import torch

from mutkv.reference.blocks import BlockPool
from mutkv.reference.prefix import PrefixStore
from mutkv.reference.session import Session
from mutkv.workloads import record

from .clean_runs import BASE, SEEDS, clean, script, tokens_of

P, S = BASE.prompt_length, BASE.steps
PAGED = {"block": 2, "pool": 60}


def watch(monkeypatch, owner, name, workload, **columns):
    """Run a script and return what each call of an engine's method was given and returned."""
    run = clean(replace(BASE, workload=workload, **columns))
    seen, method = [], getattr(owner, name)

    def watched(self, *given):
        returned = method(self, *given)
        seen.append((given, returned))
        return returned

    monkeypatch.setattr(owner, name, watched)
    with torch.no_grad():
        record(run.engine, run.configuration, SEEDS)
    return seen


def test_decode_feeds_the_clean_engines_own_choice():
    run = script("decode")
    [row] = tokens_of(run)
    assert len(row) == P + S
    assert run.argmax[0, :-1].tolist() == row[P:]


def test_a_conversation_goes_on_where_it_was_and_its_second_turn_is_shorter():
    run, alone = script("resume"), script("decode")
    turns, other = tokens_of(run)
    assert turns[: P + S] == tokens_of(alone)[0]
    assert len(turns) == P + S + 1 + P // 2 + S  # the last token of the answer comes with the second turn
    assert len(other) == P - 1 + S
    layout = run.recording.layout
    assert layout.position[layout.request == 1].tolist() == list(range(P + S + P // 2, P + S + P // 2 + S + 1))


@pytest.mark.parametrize("length", [1, 2, 3, 6, 17])
def test_a_prompt_is_fed_in_one_two_and_three_uneven_chunks(length, monkeypatch):
    calls = watch(monkeypatch, Session, "extend", "chunked", prompt_length=length, steps=0)
    lengths = [given[0].shape[-1] for given, _ in calls]
    assert sum(lengths) == 3 * length
    if length >= 6:
        assert lengths[0] == length
        assert (len(set(lengths[1:3])), len(set(lengths[3:]))) == (2, 3)


def test_equal_prompts_hit_and_others_do_not(monkeypatch):
    calls = watch(monkeypatch, PrefixStore, "lookup", "prefix", adapters=1, media=1, **PAGED)
    usable = (P - 1) // PAGED["block"]
    assert [len(table[0]) for _, table in calls] == [0, usable, usable, 0, usable, 0, 0, 0, 0, 0, usable, 0]


def test_a_full_pool_gives_blocks_up_and_uses_them_again(monkeypatch):
    assert watch(monkeypatch, PrefixStore, "forget", "pressure", block=2, pool=16)
    blocks = [block for _, block in watch(monkeypatch, BlockPool, "allocate", "pressure", block=2, pool=16)]
    assert len(set(blocks)) == 16 < len(blocks)


def test_rows_of_a_batch_have_their_own_lengths_and_the_longest_leaves():
    rows = tokens_of(script("batch", batch=3))
    assert [len(row) for row in rows] == [P + S - S // 2, P - 1 + S, P - 2 + S]
    layout = script("batch", batch=3).recording.layout
    assert [int((layout.row == row).sum()) for row in range(3)] == [1 + S - S // 2, 1 + S, 1 + S]


def test_none_one_and_both_drafts_are_rejected_in_turn():
    run = script("rollback")
    assert len(tokens_of(run)[-1]) == P + sum(3 - turn % 3 for turn in range(S))
    emitted = run.recording.layout.emitted[1:].reshape(S, 3)
    assert emitted.sum(axis=1).tolist() == [3, 2, 1, 3, 2, 1]


def test_a_beam_as_wide_as_the_vocabulary_finds_the_best_of_all_pairs_of_tokens():
    run = script("beam", vocab=5, batch=5, steps=2)
    prompt = run.recording.conversations[0].tokens[:, :1, :P]
    for seed in range(len(SEEDS)):
        scores = {}
        for pair in product(range(5), repeat=2):
            tokens = torch.cat([prompt, torch.tensor(pair).expand(len(SEEDS), 1, 2)], dim=-1)
            chances = run.engine.full(tokens)[seed, 0].log_softmax(-1)
            scores[pair] = float(chances[P - 1, pair[0]] + chances[P, pair[1]])
        assert tuple(run.recording.answer[seed, P:].tolist()) == max(scores, key=scores.get)


def test_prompts_lie_around_the_window_and_around_the_block():
    lengths = sorted({len(row) - S for row in tokens_of(script("window", window=4))})
    assert lengths == [3, 4, 5, 8]
    assert [len(row) - S for row in tokens_of(script("blocks", **PAGED))] == [1, 2, 3, 3]


def test_a_state_restored_twice_goes_on_like_the_request_it_was_saved_from():
    whole = tokens_of(script("decode"))[0]
    assert tokens_of(script("save-restore")) == [whole, whole, whole]


def test_preempted_requests_answer_as_if_nothing_had_happened():
    first, second = tokens_of(script("preempt"))
    assert first[:P] == tokens_of(script("decode"))[0][:P]
    assert first == tokens_of(script("decode", steps=len(first) - P))[0]
    assert len(second) > P + 1


def test_no_two_requests_of_a_script_have_the_same_prompt_by_chance():
    run = script("chunked", prompt_length=12)
    assert len({tuple(row[:12]) for row in tokens_of(run)}) == 3
