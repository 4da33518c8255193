"""Training over a cached prefix: which gradients it cuts, against autograd and differences that know no session."""

import math
import tomllib

import numpy as np
import pytest
import torch

from mutkv.configuration import Configuration
from mutkv.errors import UsageError
from mutkv.reference import Engine, Session
from mutkv.resources import shipped
from mutkv.studies.study import Subject
from mutkv.studies.training_prefix import (
    BUDGET,
    CURVE_STEPS,
    batches,
    check,
    constant,
    evaluate,
    frozen,
    gradient_cosines,
    gradients,
    measure,
    suffix_losses,
    through,
    train,
)
from mutkv.weights import load_weights

GUESSING = math.log(32)
SCENARIO = tomllib.loads((shipped("scenarios") / "training-prefix.toml").read_text())


def make_subject(prefix=6, seeds=(0, 1), storage="float32", engine=Engine, length=12):
    """Return the scenario's model, with a prefix and in a format."""
    configuration = Configuration(
        depth=2,
        positions="learned",
        prompt_length=prefix,
        steps=length - prefix,
        storage=storage,
        accumulator=storage,
        prefill_order="native",
        decode_order="native",
    )
    config = configuration.model()
    return Subject(configuration, seeds, config, load_weights(config, "random", 1.0, seeds), engine)


def loss_by_hand(logits, tokens, first):
    """Mean surprise, per replica, at positions ``first`` to the end, from the logits ``[R, B, T, vocab]`` before."""
    rows = [
        [logits[r, b, t - 1].logsumexp(0) - logits[r, b, t - 1, tokens[r, b, t]] for t in range(first, 12)]
        for r in range(tokens.shape[0])
        for b in range(tokens.shape[1])
    ]
    return torch.stack([torch.stack(row) for row in rows]).view(tokens.shape[0], -1).mean(dim=1)


def few_words(subject):
    """Return three rows of the first batch."""
    return next(batches(subject))[:, :3]


class Recorder(Engine):
    """Notes the weights it is given and the tokens it is fed."""

    def __init__(self, config, weights):
        super().__init__(config, weights)
        self.given = {name: tensor.detach().clone() for name, tensor in weights.items()}
        self.fed = []

    def open(self, batch=1, adapter=None, media=None):
        return RecordedSession(self, self.new_cache(batch), adapter, media)


class RecordedSession(Session):
    def extend(self, tokens, pad=None):
        self.engine.fed.append(tokens.clone())
        return super().extend(tokens, pad)


@pytest.fixture(scope="module")
def measured():
    """Return the study's figures of two seeds of the scenario at prefix 6, without the second half of the curves."""
    subject = make_subject(6, (6, 7))
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr("mutkv.studies.training_prefix.CURVE_STEPS", BUDGET)
        return {(m.quantity, m.part): m.values for m in measure(subject)}


@pytest.mark.parametrize(("prefix", "first"), [(0, 6), (2, 6), (5, 6), (6, 7), (8, 9), (10, 11)])
@pytest.mark.parametrize("prefill", [through, constant])
def test_the_loss_counts_tokens_that_the_suffix_predicts_and_an_earlier_period_decides(prefix, first, prefill):
    subject = make_subject(prefix, storage="float64")
    tokens, engine = few_words(subject), Engine(subject.config, subject.weights)
    expected = loss_by_hand(engine.full(tokens), tokens, first)
    torch.testing.assert_close(suffix_losses(engine, tokens, prefix, prefill), expected, rtol=1e-12, atol=0)


def test_the_gradient_through_a_prefix_is_that_of_the_full_path_which_has_no_cache():
    subject = make_subject(storage="float64")
    tokens = few_words(subject)
    weights = {name: tensor.clone().requires_grad_() for name, tensor in subject.weights.items()}
    loss_by_hand(Engine(subject.config, weights).full(tokens), tokens, 7).sum().backward()
    for name, gradient in gradients(subject, through, tokens).items():
        torch.testing.assert_close(gradient, weights[name].grad, rtol=1e-9, atol=1e-12)


def test_the_gradient_over_a_constant_prefix_is_the_difference_of_losses_with_the_cache_held_fixed():
    subject = make_subject(storage="float64")
    tokens = few_words(subject)
    session = Engine(subject.config, subject.weights).open(3)
    session.extend(tokens[..., :6])
    cache, generator = session.save(), torch.Generator().manual_seed(0)

    def moved_loss(name, change):
        engine = Engine(subject.config, subject.weights | {name: subject.weights[name] + change})
        session = engine.open(3)
        session.load(cache)
        unused = torch.zeros(2, 3, 6, 32, dtype=torch.float64)
        return loss_by_hand(torch.cat([unused, session.extend(tokens[..., 6:])], dim=2), tokens, 7)

    for name, gradient in gradients(subject, constant, tokens).items():
        direction = torch.randn(gradient.shape, generator=generator, dtype=torch.float64)
        slope = (moved_loss(name, 1e-5 * direction) - moved_loss(name, -1e-5 * direction)) / 2e-5
        torch.testing.assert_close((gradient * direction).flatten(1).sum(dim=1), slope, rtol=1e-6, atol=1e-8)


def test_a_constant_prefix_gives_no_gradient_to_its_positions_and_to_tokens_that_stand_in_it_alone():
    subject = make_subject()
    tokens = torch.arange(12).expand(2, 1, 12)
    flowing, cut = (gradients(subject, prefill, tokens) for prefill in (through, constant))
    for name in ("embedding", "positions"):
        rows = slice(0, 6)
        assert cut[name][:, rows].abs().max() == 0
        assert (flowing[name][:, rows].abs().amax(dim=2) > 0).all()
        assert (cut[name][:, 6:11].abs().amax(dim=2) > 0).all()


def test_only_what_makes_keys_and_values_of_the_prefix_loses_gradient():
    cosines = {m.part: m.values for m in gradient_cosines(make_subject(storage="float64"))}
    after = {f"layers.1.{name}" for name in ("qkv query", "output", "mlp_norm", "up", "down")}
    after |= {"final_norm", "unembedding"}
    assert {part for part, values in cosines.items() if min(values) > 1 - 1e-12} == after
    assert {"all", "embedding", "positions", "layers.0.qkv query", "layers.1.qkv keys", "layers.1.qkv values"} <= (
        cosines.keys() - after
    )


def test_without_a_prefix_no_gradient_is_lost():
    for measurement in gradient_cosines(make_subject(0)):
        assert measurement.values == pytest.approx([1, 1], abs=1e-12)


def test_the_cosine_over_all_parameters_is_of_the_gradients_laid_end_to_end():
    subject = make_subject()
    both = [gradients(subject, prefill, next(batches(subject))) for prefill in (through, constant)]
    expected = []
    for r in range(2):
        left, right = (np.concatenate([g[r].double().numpy().ravel() for g in found.values()]) for found in both)
        expected.append(left @ right / math.sqrt((left @ left) * (right @ right)))
    whole = next(m for m in gradient_cosines(subject) if m.part == "all")
    assert whole.values == pytest.approx(expected, rel=1e-12)


def test_a_prefix_has_the_rows_of_the_weights_of_now_or_if_frozen_of_the_initial_ones():
    subject, other = make_subject(), make_subject(seeds=(2, 3))
    prefix = few_words(subject)[..., :6]
    first, now = Engine(subject.config, subject.weights), Engine(other.config, other.weights)
    rows = {}
    for name, engine in (("first", first), ("now", now)):
        session = engine.open(3)
        session.extend(prefix)
        rows[name] = torch.stack([part for layer in session.stored() for part in layer])
    for prefill, expected in ((through, "now"), (constant, "now"), (frozen(first), "first")):
        session = prefill(now, prefix)
        assert session.length == 6
        assert torch.equal(torch.stack([part for layer in session.stored() for part in layer]), rows[expected])


def test_both_ways_start_from_the_same_weights_and_see_the_same_data():
    subject = make_subject(engine=Recorder)
    flowing, cut = (train(subject, prefill, 3)[0] for prefill in (through, constant))
    assert all(torch.equal(flowing.given[name], tensor) for name, tensor in subject.weights.items())
    assert all(torch.equal(cut.given[name], tensor) for name, tensor in subject.weights.items())
    assert len(flowing.fed) == len(cut.fed) == 6
    assert all(map(torch.equal, flowing.fed, cut.fed))
    assert not torch.equal(flowing.fed[0], flowing.fed[2])
    assert not torch.equal(flowing.fed[0][0], flowing.fed[0][1])


def test_training_leaves_the_shared_weights_as_they_were():
    subject = make_subject()
    before = {name: tensor.clone() for name, tensor in subject.weights.items()}
    engine, _ = train(subject, constant, 2)
    for name, tensor in subject.weights.items():
        assert torch.equal(tensor, before[name])
        assert not tensor.requires_grad
        assert not torch.equal(engine.decoder.weights[name], tensor)


def test_no_word_of_the_scenarios_training_is_held_out():
    subject = make_subject(seeds=tuple(SCENARIO["axes"]["seed"]), engine=Recorder)
    engine = Recorder(subject.config, subject.weights)
    evaluate(subject, engine, constant)
    held_out = torch.cat(engine.fed, dim=2)
    assert torch.equal(held_out[..., :6], held_out[..., 6:])
    drawn = {
        tuple(word)
        for _, batch in zip(range(CURVE_STEPS), batches(subject), strict=False)
        for word in batch[..., :6].reshape(-1, 6).tolist()
    }
    assert len(drawn) > 150_000
    assert not drawn & {tuple(word) for word in held_out[0, :, :6].tolist()}


def test_a_seed_has_the_same_figures_alone_and_beside_others():
    group, alone = make_subject(seeds=(0, 1, 2)), make_subject(seeds=(1,))
    for beside, single in zip(gradient_cosines(group), gradient_cosines(alone), strict=True):
        assert (single.part, single.values) == (beside.part, pytest.approx([beside.values[1]], rel=1e-9))
    beside, single = (train(subject, constant, 50)[1][50] for subject in (group, alone))
    assert single == pytest.approx([beside[1]], rel=1e-5)


def test_at_equal_steps_a_constant_prefix_of_6_of_12_is_behind_and_still_better_than_guessing(measured):
    flowing, cut = (measured[f"suffix loss, {name}", "all"] for name in ("through", "constant"))
    assert max(flowing) < 0.2
    assert all(10 * left < right < GUESSING for left, right in zip(flowing, cut, strict=True))


def test_a_model_trained_on_a_frozen_prefix_of_6_of_12_is_worse_than_guessing_once_it_is_recomputed(measured):
    assert max(measured["suffix loss, frozen", "all"]) < GUESSING / 2
    assert min(measured["suffix loss, frozen, prefix recomputed", "all"]) > GUESSING


def test_the_curves_have_a_point_every_fifty_steps_and_pass_through_the_figures_at_the_budget(measured):
    for name in ("through", "constant"):
        steps = [part for quantity, part in measured if quantity == f"held-out loss, {name}"]
        assert steps == [f"step {step}" for step in range(50, 301, 50)]
        assert measured[f"held-out loss, {name}", "step 300"] == measured[f"suffix loss, {name}", "all"]
    assert min(measured["suffix loss, untrained", "all"]) > GUESSING


@pytest.mark.parametrize(("prefix", "length"), [(11, 12), (12, 12), (2, 6), (0, 6)])
def test_a_suffix_with_nothing_to_predict_is_refused(prefix, length):
    with pytest.raises(UsageError, match=r"^prompt_length \d+ with steps \d+ has nothing to predict: use .*$"):
        check(make_subject(prefix, length=length).configuration)
