"""Angles and slopes against the formulas of their papers, written out here."""

import pytest
import torch

from mutkv.configuration import ModelConfig
from mutkv.reference.alibi import distance_bias, slopes
from mutkv.reference.rotary import rotation_tables

from .test_model import ALIBI, rope_rates


@pytest.mark.parametrize("scaling", ["none", "linear", "yarn"])
@pytest.mark.parametrize("head_dim", [2, 6, 16, 64])
def test_every_position_is_turned_by_the_papers_angle(scaling, head_dim):
    cos, sin = rotation_tables(ModelConfig(head_dim=head_dim, rope_scaling=scaling, context=200))
    rates, factor = rope_rates(head_dim // 2, scaling)
    angles = torch.arange(200, dtype=torch.float64)[:, None] * torch.tensor(rates, dtype=torch.float64)
    torch.testing.assert_close(cos, factor * angles.cos(), rtol=0, atol=1e-12)
    torch.testing.assert_close(sin, factor * angles.sin(), rtol=0, atol=1e-12)


def test_yarn_keeps_fast_pairs_and_stretches_slow_ones():
    plain, yarn, linear = (rope_rates(32, scaling)[0] for scaling in ("none", "yarn", "linear"))
    assert all(low < mixed < high for low, mixed, high in zip(linear[:5], yarn, plain, strict=False))
    assert yarn[-5:] == pytest.approx(linear[-5:])


@pytest.mark.parametrize("heads", [1, 2, 3, 4])
def test_slopes_are_those_of_the_authors_code(heads):
    assert slopes(heads) == ALIBI[heads]


def test_slopes_of_twelve_heads_are_eight_and_every_other_of_sixteen():
    assert slopes(12) == [2.0**-n for n in range(1, 9)] + [2.0 ** -(n / 2) for n in (1, 3, 5, 7)]


def test_the_penalty_grows_with_distance_and_is_nothing_for_the_token_itself():
    bias = distance_bias(2, torch.tensor([3, 4]), torch.arange(5))
    assert bias.shape == (2, 2, 5)
    assert bias[0, 0, :4].tolist() == [-3 / 16, -2 / 16, -1 / 16, 0]
    assert bias[1, 1].tolist() == [-4 / 256, -3 / 256, -2 / 256, -1 / 256, 0]
