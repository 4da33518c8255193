"""The gradient study against torch's own checks, another decoder, and gradients made wrong on purpose."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's convention

from mutkv.configuration import Configuration
from mutkv.errors import UsageError
from mutkv.mutation.copy import load_copy
from mutkv.reference import Engine
from mutkv.studies.gradients import check, differences, loss, measure
from mutkv.studies.study import Subject
from mutkv.weights import load_weights, prompt_tokens
from mutkv.weights.random import shapes
from tests.grid.small_grids import mutant_of
from tests.reference.test_model import decoder

SEEDS = (0, 1, 2)
BOUND = 3.2e-8
"""The source's figure, over 24 tensors."""

LEARNED = Configuration(depth=4, head_dim=4, vocab=8, steps=4, positions="learned")
ROPE = replace(LEARNED, depth=2, kv_heads=1, positions="rope", batch=2, prefill_order="pairwise")
SMALL = Configuration(heads=1, kv_heads=1, head_dim=2, vocab=3, prompt_length=2, steps=2)


def subject_of(configuration, make_engine=Engine, seeds=SEEDS):
    config = configuration.model()
    weights = load_weights(config, configuration.weights, configuration.sharpness, seeds)
    return Subject(configuration, seeds, config, weights, make_engine)


@torch.no_grad()
def measured(subject):
    """Return the figures ``[R]`` of each tensor, by quantity."""
    found = {"gradient error": {}, "gradient size": {}, "relative error": {}}
    for each in measure(subject):
        assert each.part not in found[each.quantity]
        found[each.quantity][each.part] = list(each.values)
    for figures in found.values():
        assert set(figures) == set(shapes(subject.config))
        assert all(len(values) == len(subject.seeds) for values in figures.values())
    return found


def tokens_of(subject):
    count = subject.configuration.prompt_length + subject.configuration.steps
    return [torch.from_numpy(prompt_tokens(subject.configuration, seed, count)) for seed in subject.seeds]


@pytest.mark.parametrize(("configuration", "tensors"), [(LEARNED, 28), (ROPE, 15)], ids=["learned", "rope"])
def test_autograd_and_central_differences_agree_in_every_tensor_within_the_published_bound(configuration, tensors):
    found = measured(subject_of(configuration))
    assert len(found["gradient error"]) == tensors
    for name, errors in found["gradient error"].items():
        assert 0 < max(errors) <= BOUND
        sizes, ratios = found["gradient size"][name], found["relative error"][name]
        assert min(sizes) > 1e-3  # there is something to be wrong about
        assert ratios == pytest.approx([error / size for error, size in zip(errors, sizes, strict=True)], rel=1e-6)


@pytest.mark.parametrize("configuration", [replace(LEARNED, depth=2), ROPE], ids=["learned", "rope"])
def test_both_sides_are_the_gradient_of_an_independent_decoder(configuration):
    subject = subject_of(configuration)
    sizes = measured(subject)["gradient size"]
    for index, tokens in enumerate(tokens_of(subject)):
        leaves = {name: tensor[index].clone().requires_grad_() for name, tensor in subject.weights.items()}
        logits = torch.cat([decoder(subject.config, leaves, row[:-1]) for row in tokens])
        F.cross_entropy(logits, tokens[:, 1:].flatten()).backward()
        truth = {name: leaf.grad for name, leaf in leaves.items()}
        for name, gradient in truth.items():
            assert sizes[name][index] == pytest.approx(float(gradient.abs().max()), rel=1e-10)
        for name in ("embedding", "layers.1.qkv", "final_norm"):
            slopes = differences(subject, name, index, torch.stack(tokens_of(subject)))
            torch.testing.assert_close(slopes, truth[name], rtol=0, atol=BOUND)


@pytest.mark.parametrize("order", ["sequential", "pairwise"])
def test_gradcheck_accepts_the_loss_of_the_engine(order):
    subject = subject_of(replace(SMALL, prefill_order=order), seeds=(0, 1))
    tokens = torch.stack(tokens_of(subject))

    def loss_of(*weights):
        return loss(Engine(subject.config, dict(zip(subject.weights, weights, strict=True))), tokens)

    leaves = [tensor.clone().requires_grad_() for tensor in subject.weights.values()]
    assert torch.autograd.gradcheck(loss_of, leaves)


def with_gradient(name, change):
    """Return what builds an engine whose gradient of one tensor is wrong, and whose loss is right."""

    def make_engine(config, weights):
        if weights[name].requires_grad:
            weights[name].register_hook(change)
        return Engine(config, weights)

    return make_engine


@pytest.mark.parametrize("name", ["embedding", "layers.0.mlp_norm", "layers.1.output", "unembedding"])
def test_a_gradient_that_is_a_little_too_large_is_noticed_in_its_tensor_alone(name):
    found = measured(subject_of(replace(ROPE, batch=1), with_gradient(name, lambda gradient: gradient * 1.001)))
    size = [value / 1.001 for value in found["gradient size"][name]]
    assert found["gradient error"][name] == pytest.approx([0.001 * value for value in size], rel=1e-4)
    assert found["relative error"][name] == pytest.approx([0.001 / 1.001] * 3, rel=1e-4)
    assert all(max(errors) <= BOUND for other, errors in found["gradient error"].items() if other != name)


def test_a_gradient_in_a_position_beyond_the_sequence_is_an_error():
    def leak(gradient):
        assert (gradient[:, SMALL.tokens - 1 :] == 0.0).all()  # the last token is predicted, not fed
        changed = gradient.clone()
        changed[:, -1, -1] = 5.0
        return changed

    subject = subject_of(replace(SMALL, positions="learned"), with_gradient("positions", leak))
    assert measured(subject)["gradient error"]["positions"] == [5.0, 5.0, 5.0]


def test_a_tensor_without_effect_has_gradient_and_errors_of_exactly_zero():
    subject = subject_of(SMALL)
    silent = replace(subject, weights=subject.weights | {"layers.0.down": torch.zeros(3, 4, 2, dtype=torch.float64)})
    found = measured(silent)
    for figures in found.values():
        assert figures["layers.0.up"] == figures["layers.0.mlp_norm"] == [0.0, 0.0, 0.0]
    wrong = replace(silent, make_engine=with_gradient("layers.0.up", lambda gradient: gradient + 1e-3))
    assert measured(wrong)["relative error"]["layers.0.up"] == [1.0, 1.0, 1.0]


def test_a_gradient_that_is_missing_is_a_relative_error_of_one():
    found = measured(subject_of(SMALL, with_gradient("layers.0.up", torch.zeros_like)))
    assert found["gradient size"]["layers.0.up"] == [0.0, 0.0, 0.0]
    assert found["relative error"]["layers.0.up"] == [1.0, 1.0, 1.0]


def test_the_differences_use_the_forward_pass_alone_and_a_bounded_number_of_replicas():
    seen = []

    class Watched(Engine):
        def full(self, tokens, adapter=None, media=None):
            tracked = torch.is_grad_enabled() or any(tensor.requires_grad for tensor in self.decoder.weights.values())
            seen.append((tracked, self.replicas))
            return super().full(tokens, adapter, media)

    subject = subject_of(replace(LEARNED, depth=1), Watched, seeds=(0, 1))
    measured(subject)
    assert seen.pop(0) == (True, 2)
    assert not any(tracked for tracked, _ in seen)
    entries = sum(tensor[0].numel() for tensor in subject.weights.values())
    assert sum(replicas for _, replicas in seen) == 2 * 2 * entries  # two seeds, up and down
    assert max(replicas for _, replicas in seen) == 256


def test_a_mutant_that_cuts_the_gradient_is_measured_and_not_crashed(tmp_path):
    line = 'normed = step.kernel.norm(hidden, self.weights[f"layers.{layer}.attention_norm"])'
    mutant = mutant_of(tmp_path, "cut", "model.py", line, line.replace("norm(hidden,", "norm(hidden.detach(),"))
    engine = load_copy("mutkv.reference", mutant).module("engine").Engine
    found = measured(subject_of(SMALL, engine))
    errors, sizes = (found[f"gradient {what}"]["embedding"] for what in ("error", "size"))
    assert min(error / size for error, size in zip(errors, sizes, strict=True)) > 0.01


def test_a_sequence_that_predicts_no_token_is_refused():
    with pytest.raises(UsageError, match=r"prompt_length \+ steps is 1, and predicts no token: use at least 2"):
        check(replace(SMALL, prompt_length=1, steps=0))
