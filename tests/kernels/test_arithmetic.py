"""Which kernel an arithmetic means, and which order the control repeats the full path in."""

import pytest
import torch

from mutkv.kernels import Arithmetic, kernel_for
from mutkv.kernels.exact import ExactKernel
from mutkv.kernels.native import NativeKernel


@pytest.mark.parametrize(
    ("prefill", "decode", "control"),
    [
        ("sequential", "sequential", "pairwise"),
        ("pairwise", "pairwise", "sequential"),
        ("native", "native", "sequential"),
        ("sequential", "pairwise", "pairwise"),
        ("pairwise", "native", "native"),
        ("native", "pairwise", "pairwise"),
    ],
)
def test_control_runs_in_the_decode_order_when_split_and_else_in_the_opposite_one(prefill, decode, control):
    arithmetic = Arithmetic(prefill_order=prefill, decode_order=decode)
    assert arithmetic.control_order == control
    assert arithmetic.split == (prefill != decode)
    assert arithmetic.native == ("native" in (prefill, decode))


def test_the_order_decides_the_kernel_and_the_formats_its_numbers():
    arithmetic = Arithmetic("bfloat16", "float32")
    exact, native = kernel_for(arithmetic, "pairwise"), kernel_for(arithmetic, "native")
    assert isinstance(exact, ExactKernel)
    assert (exact.storage, exact.accumulator, exact.order) == (torch.bfloat16, torch.float32, "pairwise")
    assert isinstance(native, NativeKernel)
    assert native.storage == torch.bfloat16


def test_a_wider_accumulator_rounds_once_where_a_narrow_one_rounds_at_every_term():
    ones, matrix = torch.ones(1, 1, 1, 512).bfloat16(), torch.ones(1, 512, 1).bfloat16()
    wide = ExactKernel("bfloat16", "float64", "sequential").product(ones, matrix)
    narrow = ExactKernel("bfloat16", "bfloat16", "sequential").product(ones, matrix)
    assert wide.item() == 512
    assert narrow.item() == 256  # bfloat16 has 8 significant bits: 256 + 1 rounds back to 256
