"""The training recipe: what it optimises, when it stops, what it refuses, and that it can be repeated."""

import json
import math
from dataclasses import asdict, replace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from mutkv.configuration import ModelConfig
from mutkv.errors import BaselineError, UsageError
from mutkv.exit_codes import ExitCode
from mutkv.reference import Engine
from mutkv.weights import load_weights
from mutkv.weights.train import FAMILIES, Recipe, replica_losses, save_family, train_family
from mutkv.weights.trained import SHIPPED

ANYTHING_GOES = Recipe(batch=4, learning_rate=1e-2, target_loss=math.inf, seeds=(0, 1))


def unheard(step, loss):
    pass


@pytest.fixture
def tiny(monkeypatch):
    """Replace the recipe of the family "rope"."""

    def recipe(**changes):
        config = replace(FAMILIES["rope"][0], depth=1)
        monkeypatch.setitem(FAMILIES, "rope", (config, replace(ANYTHING_GOES, **changes)))

    return recipe


def loss_by_hand(logits, tokens, period):
    """Mean surprise at each token that the first ``period`` tokens decide."""
    surprises = []
    for row, row_logits in zip(tokens.tolist(), logits.tolist(), strict=True):
        for position in range(period, len(row)):
            powers = [math.exp(logit) for logit in row_logits[position - 1]]
            surprises.append(-math.log(powers[row[position]] / sum(powers)))
    return sum(surprises) / len(surprises)


def test_the_loss_is_the_mean_surprise_at_every_token_from_the_second_period_on_per_replica():
    config = ModelConfig(vocab=7)
    engine = Engine(config, load_weights(config, "random", 1.0, (0, 1)))
    tokens = torch.randint(7, (2, 3, 11), generator=torch.Generator().manual_seed(0))
    expected = [loss_by_hand(engine.full(tokens)[r], tokens[r], 4) for r in range(2)]
    assert replica_losses(engine, tokens, 4).tolist() == pytest.approx(expected, rel=1e-12)


def test_no_gradient_crosses_between_replicas():
    config = ModelConfig(vocab=7)
    shared = load_weights(config, "random", 1.0, (0, 1))
    weights = {name: tensor.clone().requires_grad_() for name, tensor in shared.items()}
    replica_losses(Engine(config, weights), torch.zeros(2, 1, 6, dtype=torch.int64), 2)[0].backward()
    assert all(tensor.grad[1].abs().max() == 0 for tensor in weights.values())
    assert weights["unembedding"].grad[0].abs().max() > 0


def test_a_seed_is_trained_to_the_same_weights_alone_and_beside_others(tiny):
    tiny(seeds=(0, 1))
    together = train_family("rope", unheard)
    tiny(seeds=(1,))
    alone = train_family("rope", unheard)
    for name, tensor in alone.tensors.items():
        torch.testing.assert_close(together.tensors[name][1:], tensor, rtol=1e-5, atol=1e-6)


def test_training_twice_writes_the_same_bytes(tiny, tmp_path):
    tiny()
    first, second = (save_family(tmp_path / name, train_family("rope", unheard)) for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_a_file_says_how_it_was_made_and_holds_what_was_trained(tiny, tmp_path):
    tiny()
    trained = train_family("rope", unheard)
    path = save_family(tmp_path / "new" / "folder", trained)
    assert path.name == "rope.safetensors"
    with safe_open(path, "pt") as file:
        provenance = json.loads(file.metadata()["provenance"])
    assert provenance["recipe"] == {**asdict(FAMILIES["rope"][1]), "seeds": [0, 1]}
    assert provenance["command"] == "mutkv weights train --family rope"
    assert (provenance["losses"], provenance["torch"]) == (list(trained.losses), torch.__version__)
    written = load_file(path)
    assert written.keys() == trained.tensors.keys()
    assert all(torch.equal(written[name], tensor) for name, tensor in trained.tensors.items())


def test_training_stops_at_the_first_check_where_the_worst_seed_is_at_the_target(tiny):
    heard = []
    tiny(target_loss=3.2)
    trained = train_family("rope", lambda step, loss: heard.append((step, loss)))
    assert [step for step, _ in heard] == list(range(25, trained.steps + 1, 25))
    assert len(heard) > 1
    assert all(loss > 3.2 for _, loss in heard[:-1])
    assert heard[-1] == (trained.steps, max(trained.losses))
    assert max(trained.losses) <= 3.2


def test_a_family_with_a_seed_short_of_the_target_is_refused_with_the_losses_of_all(tiny):
    tiny(target_loss=0.05, max_steps=25)
    with pytest.raises(
        BaselineError, match=r"^family 'rope' misses .* 0.05 after 25 .*seed 0: .*seed 1: .*$"
    ) as caught:
        train_family("rope", unheard)
    assert caught.value.exit_code == ExitCode.BASELINE == 4


@pytest.mark.parametrize("changes", [{"learning_rate": 1e30, "max_steps": 25}, {"max_steps": 24}])
def test_a_family_that_diverged_or_was_never_measured_is_refused(tiny, changes):
    tiny(**changes)
    with pytest.raises(BaselineError, match=r"seed 0: nan|none measured"):
        train_family("rope", unheard)


def test_training_runs_on_one_thread_and_gives_the_others_back(tiny):
    tiny(target_loss=0.0, max_steps=25)
    before, during = torch.get_num_threads(), []
    try:
        torch.set_num_threads(2)
        with pytest.raises(BaselineError):
            train_family("rope", lambda step, loss: during.append(torch.get_num_threads()))
        assert (during, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(before)


def test_a_family_nobody_has_is_refused_with_the_nearest_name():
    with pytest.raises(UsageError, match="unknown family 'learnt': did you mean learned"):
        train_family("learnt", unheard)


def test_a_folder_that_cannot_be_written_is_one_line_that_names_it(tiny, tmp_path):
    tiny()
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match=r"^cannot write .*file.rope.safetensors: .*--out$"):
        save_family(tmp_path / "file", train_family("rope", unheard))


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_every_shipped_family_can_be_trained_again_to_the_losses_its_file_records(name):
    trained = train_family(name, unheard)
    with safe_open(SHIPPED / f"{name}.safetensors", "pt") as file:
        made = json.loads(file.metadata()["provenance"])
    assert max(trained.losses) <= FAMILIES[name][1].target_loss == 0.05
    assert trained.steps == made["steps"]
    assert trained.losses == pytest.approx(made["losses"], rel=0.05)  # another CPU rounds otherwise
