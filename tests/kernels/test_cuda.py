"""What must hold on a CUDA device: the plain form there is exact as well. Runs with ``-m gpu``."""

import pytest
import torch

from mutkv.configuration import ModelConfig
from mutkv.kernels import Arithmetic
from mutkv.reference import Engine
from mutkv.weights import load_weights

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]
FORMATS = [("float64", "float64"), ("float32", "float32"), ("bfloat16", "float64")]


@pytest.mark.parametrize(("storage", "accumulator"), FORMATS)
@pytest.mark.parametrize("order", ["sequential", "pairwise"])
def test_cached_decode_equals_the_full_path_bit_for_bit_on_cuda(storage, accumulator, order):
    arithmetic = Arithmetic(storage, accumulator, order, order)
    config = ModelConfig(depth=2, heads=3, kv_heads=3, head_dim=6, vocab=33, arithmetic=arithmetic, device="cuda")
    engine = Engine(config, load_weights(config, "random", 1.0, (0, 1, 2)))
    tokens = torch.randint(33, (3, 2, 13), generator=torch.Generator().manual_seed(0)).cuda()
    session = engine.open(2)
    pieces = [session.extend(tokens[..., :5])] + [session.extend(tokens[..., i : i + 1]) for i in range(5, 13)]
    full = engine.full(tokens)
    assert torch.equal(torch.cat(pieces, dim=2), full)
    assert torch.equal(engine.full(tokens[:, :1]), full[:, :1])
