"""Small engines of many structures, and the plain loop that feeds a session."""

import numpy as np
import torch
from hypothesis import strategies as st

from mutkv.configuration import ModelConfig
from mutkv.kernels import Arithmetic
from mutkv.reference import Engine
from mutkv.weights import load_weights

FORMATS = [("float64", "float64"), ("float32", "float32"), ("bfloat16", "float64"), ("bfloat16", "bfloat16")]
ORDERS = ("sequential", "pairwise")
CONTEXT = 128


def make_engine(config, seeds=(0,), sharpness=1.0):
    """Return an engine with one replica of random weights per seed."""
    return Engine(config, load_weights(config, "random", sharpness, tuple(seeds)))


def make_tokens(config, replicas, batch, length, seed=0):
    """Draw tokens ``[R, B, T]``."""
    return torch.from_numpy(np.random.default_rng(seed).integers(config.vocab, size=(replicas, batch, length)))


def feed(session, tokens, chunks):
    """Feed tokens in chunks of these lengths; return the logits of all positions."""
    return torch.cat([session.extend(part) for part in tokens.split(list(chunks), dim=-1)], dim=2)


@st.composite
def structures(draw, formats=FORMATS[:3]):
    """Draw a decoder of odd widths: heads 1 to 4, any divisor as kv_heads, odd head_dim where rope allows it."""
    positions = draw(st.sampled_from(["learned", "rope", "alibi"]))
    rope = positions == "rope"
    heads = draw(st.integers(1, 4))
    head_dim = draw(st.sampled_from([2, 4, 6, 10] if positions == "rope" else [1, 3, 5, 7, 9, 11]))
    order = draw(st.sampled_from(ORDERS))
    return ModelConfig(
        depth=draw(st.integers(1, 3)),
        heads=heads,
        kv_heads=draw(st.sampled_from([n for n in (1, 2, 3) if heads % n == 0])),
        head_dim=head_dim,
        vocab=draw(st.integers(2, 33)),
        positions=positions,
        rotation=draw(st.sampled_from(["write", "read"])) if rope else "write",
        rope_scaling=draw(st.sampled_from(["none", "linear", "yarn"])) if rope else "none",
        window=draw(st.sampled_from([0, 0, 1, 3, 8])),
        capacity=draw(st.sampled_from([0, CONTEXT])),
        context=CONTEXT,
        arithmetic=Arithmetic(*draw(st.sampled_from(formats)), order, order),
    )


chunk_lists = st.lists(st.integers(1, 5), min_size=1, max_size=6)
"""Lengths of successive calls of ``extend``: a prefill, then chunks and single tokens in any mixture."""
