"""The decoder against one written here with torch.nn.functional and complex numbers."""

import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's convention
from hypothesis import given, settings
from hypothesis import strategies as st

from mutkv.configuration import ModelConfig
from mutkv.kernels import Arithmetic

from .engines import FORMATS, chunk_lists, feed, make_engine, make_tokens, structures


def decoder(config, weights, tokens):
    """Logits of tokens ``[T]`` by one replica's weights: matrices are ``[inputs, outputs]``."""
    length, heads, width = len(tokens), config.heads, config.width
    x = F.embedding(tokens, weights["embedding"])
    if config.positions == "learned":
        x = x + weights["positions"][:length]
    for layer in range(config.depth):
        part = {name.split(".")[-1]: w for name, w in weights.items() if name.startswith(f"layers.{layer}.")}
        normed = F.rms_norm(x, (width,), part["attention_norm"], 1e-6)
        sizes = [width, config.kv_heads * config.head_dim, config.kv_heads * config.head_dim]
        q, k, v = (y.view(length, -1, config.head_dim).transpose(0, 1) for y in (normed @ part["qkv"]).split(sizes, -1))
        if config.positions == "rope":
            q, k = (rope(part, config.rope_scaling) for part in (q, k))
        mask = score_mask(config, length)
        attended = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask, enable_gqa=True)[0]
        assert attended.shape == (heads, length, config.head_dim)
        x = x + attended.transpose(0, 1).reshape(length, width) @ part["output"]
        x = x + F.silu(F.rms_norm(x, (width,), part["mlp_norm"], 1e-6) @ part["up"]) @ part["down"]
    return F.rms_norm(x, (width,), weights["final_norm"], 1e-6) @ weights["unembedding"]


def score_mask(config, length):
    """What is added to the scores of each head ``[heads, T, T]``: -inf outside the window, ALiBi's penalty inside."""
    mask = torch.full((config.heads, length, length), -torch.inf, dtype=torch.float64)
    for query in range(length):
        for key in range(max(0, query - config.window + 1) if config.window else 0, query + 1):
            mask[:, query, key] = 0
            if config.positions == "alibi":
                mask[:, query, key] = -torch.tensor(ALIBI[config.heads], dtype=torch.float64) * (query - key)
    return mask


ALIBI = {1: [2**-8], 2: [2**-4, 2**-8], 3: [2**-4, 2**-8, 2**-2], 4: [2**-2, 2**-4, 2**-6, 2**-8]}
"""Slopes by number of heads, by the function get_slopes of the authors' code."""


def rope_rates(pairs, scaling):
    """Angle per position of each pair, by Su et al., or stretched four times from 32 positions; and YaRN's factor."""
    rates, stretch = [10_000.0 ** (-pair / pairs) for pair in range(pairs)], 4
    if scaling == "linear":
        return [rate / stretch for rate in rates], 1.0
    if scaling == "none":
        return rates, 1.0
    found = []
    for rate in rates:  # Peng et al. 2023, equations 17 to 22, with alpha 1 and beta 32
        wavelength = 2 * math.pi / rate
        ramp = min(max((32 / wavelength - 1) / (32 - 1), 0), 1)
        found.append((1 - ramp) * rate / stretch + ramp * rate)
    return found, 0.1 * math.log(stretch) + 1


def rope(x, scaling="none"):
    """Rotary positions with halves as real and imaginary parts: x ``[heads, T, D]``."""
    half = x.shape[-1] // 2
    rates, factor = rope_rates(half, scaling)
    angles = torch.arange(x.shape[1])[:, None] * torch.tensor(rates, dtype=torch.float64)
    turns = torch.polar(torch.full_like(angles, factor), angles)
    turned = torch.complex(x[..., :half].contiguous(), x[..., half:].contiguous()) * turns
    return torch.cat([turned.real, turned.imag], dim=-1)


@settings(max_examples=60)
@given(structures(FORMATS[:1]), st.sampled_from([1.0, 2.5]), st.integers(1, 2), st.integers(1, 14))
def test_full_path_computes_the_logits_of_an_independent_decoder(config, sharpness, batch, length):
    engine = make_engine(config, (7, 8), sharpness)
    tokens = make_tokens(config, 2, batch, length)
    logits = engine.full(tokens)
    for r in range(2):
        weights = {name: tensor[r] for name, tensor in engine.decoder.weights.items()}
        for b in range(batch):
            torch.testing.assert_close(logits[r, b], decoder(config, weights, tokens[r, b]), rtol=1e-12, atol=1e-12)


@settings(max_examples=25)
@given(structures(FORMATS[:1]), chunk_lists)
def test_native_paths_agree_with_exact_ones_within_rounding(config, chunks):
    exact = make_engine(config, (1, 2))
    native = ModelConfig(**{**fields(config), "arithmetic": Arithmetic("float64", "float64", "native", "native")})
    tokens = make_tokens(config, 2, 2, sum(chunks))
    other = make_engine(native, (1, 2))
    for logits in (other.full(tokens), feed(other.open(2), tokens, chunks)):
        torch.testing.assert_close(logits, exact.full(tokens), rtol=0, atol=1e-10)


def fields(config):
    return {name: getattr(config, name) for name in ModelConfig.__slots__}


@pytest.mark.parametrize("storage", ["float64", "float32"])
@pytest.mark.parametrize("length", [2, 3, 7])  # lengths at which three rows in one native call have other bits than one
def test_native_full_path_of_a_row_is_that_row_alone(storage, length):
    config = ModelConfig(heads=1, kv_heads=1, arithmetic=Arithmetic(storage, storage, "native", "native"))
    engine = make_engine(config)
    tokens = make_tokens(config, 1, 3, length)
    together = engine.trace(tokens)
    for row in range(3):
        alone = engine.trace(tokens[:, row : row + 1])
        assert torch.equal(together.logits[:, row : row + 1], alone.logits)
        for part in ("hidden", "keys", "values", "attended"):
            for left, right in zip(getattr(together, part), getattr(alone, part), strict=True):
                assert torch.equal(left[:, row : row + 1], right)


@pytest.mark.parametrize("kv_heads", [1, 2, 4, 8])
def test_neighbouring_query_heads_share_one_key_head(kv_heads):
    config = ModelConfig(heads=8, kv_heads=kv_heads, head_dim=4)
    engine, tokens = make_engine(config), make_tokens(config, 1, 1, 9)
    weights = {name: tensor[0] for name, tensor in engine.decoder.weights.items()}
    torch.testing.assert_close(engine.full(tokens)[0, 0], decoder(config, weights, tokens[0, 0]), rtol=0, atol=1e-12)


def test_trace_holds_the_residual_stream_and_the_attention_that_make_the_logits():
    config = ModelConfig(depth=3, heads=2, kv_heads=1, positions="rope")
    engine = make_engine(config)
    weights = {name: tensor[0] for name, tensor in engine.decoder.weights.items()}
    tokens = make_tokens(config, 1, 1, 6)
    trace = engine.trace(tokens)
    stream = F.embedding(tokens[0, 0], weights["embedding"])
    for layer in range(3):
        stream = stream + trace.attended[layer][0, 0] @ weights[f"layers.{layer}.output"]
        normed = F.rms_norm(stream, (config.width,), weights[f"layers.{layer}.mlp_norm"], 1e-6)
        stream = stream + F.silu(normed @ weights[f"layers.{layer}.up"]) @ weights[f"layers.{layer}.down"]
        torch.testing.assert_close(trace.hidden[layer][0, 0], stream, rtol=1e-12, atol=1e-12)
    final = F.rms_norm(stream, (config.width,), weights["final_norm"], 1e-6) @ weights["unembedding"]
    torch.testing.assert_close(trace.logits[0, 0], final, rtol=1e-12, atol=1e-12)
    assert [len(part) for part in (trace.hidden, trace.keys, trace.values, trace.attended)] == [3] * 4
    assert trace.keys[0].shape == (1, 1, 6, 1, 8)
