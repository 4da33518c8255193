"""A decoder: RMSNorm, multi-head or grouped-query attention, SiLU MLP, residuals; learned, rotary or ALiBi positions.

One ``forward`` serves both paths. With a cache it feeds new tokens over the stored past; without one it computes the
whole sequence. Names in shapes: R replicas, B rows, n new tokens, past stored tokens.
"""

import torch
from torch import Tensor

from mutkv.configuration import ModelConfig
from mutkv.kernels import Kernel
from mutkv.protocol import Trace
from mutkv.reference.alibi import distance_bias
from mutkv.reference.cache import Cache
from mutkv.reference.rotary import rotation_tables


class Decoder:
    """The model's weights and its forward pass."""

    def __init__(self, config: ModelConfig, weights: dict[str, Tensor]) -> None:
        self.config = config
        self.weights = weights
        self.cos, self.sin = rotation_tables(config)  # each [context, head_dim / 2]

    def forward(self, tokens: Tensor, start: int, kernel: Kernel, cache: Cache | None = None) -> Trace:
        """Compute tokens ``[R, B, n]`` at positions start, start + 1, ...; with a cache, over its past."""
        positions = torch.arange(start, start + tokens.shape[-1], device=tokens.device)  # [n]
        hidden = self.embed(tokens, positions, kernel)  # [R, B, n, width]
        layers = []
        for layer in range(self.config.depth):
            attended, new = self.attention(layer, hidden, positions, kernel, cache)
            hidden = kernel.add(hidden, kernel.product(attended, self.weights[f"layers.{layer}.output"]))
            hidden = kernel.add(hidden, self.mlp(layer, hidden, kernel))
            layers.append((hidden, new[0], new[1], attended))
        final = kernel.norm(hidden, self.weights["final_norm"])
        logits = kernel.product(final, self.weights["unembedding"])  # [R, B, n, vocab]
        return Trace(logits, *zip(*layers, strict=True))

    def embed(self, tokens: Tensor, positions: Tensor, kernel: Kernel) -> Tensor:
        """Look up tokens ``[R, B, n]``, and add learned positions where the model has them."""
        replica = torch.arange(tokens.shape[0], device=tokens.device)[:, None, None]
        hidden = self.weights["embedding"][replica, tokens]  # [R, B, n, width]
        if self.config.positions == "learned":
            hidden = kernel.add(hidden, self.weights["positions"][:, None, positions])
        return hidden

    def attention(
        self, layer: int, hidden: Tensor, positions: Tensor, kernel: Kernel, cache: Cache | None
    ) -> tuple[Tensor, Tensor]:
        """Attend from the new tokens over past and new; return the result and the new keys and values."""
        query, projected_keys, values = self.project(layer, hidden, kernel)
        keys = projected_keys
        if self.config.positions == "rope":
            query = kernel.rotate(query, self.cos[positions], self.sin[positions])
            if self.config.rotation == "write":
                keys = kernel.rotate(projected_keys, self.cos[positions], self.sin[positions])
        new = torch.stack([keys, values])  # [2, R, B, n, kv_heads, head_dim]
        seen = new
        if cache is not None:
            past = cache.read(layer)  # [2, R, B, past, kv_heads, head_dim]
            cache.append(layer, new)  # now [2, R, B, past + n, kv_heads, head_dim]
            seen = torch.cat([past, new], dim=3)  # [2, R, B, past + n, kv_heads, head_dim]
        return self.attend(query, seen, kernel), new

    def project(self, layer: int, hidden: Tensor, kernel: Kernel) -> tuple[Tensor, Tensor, Tensor]:
        """Return query ``[R, B, n, heads, head_dim]`` and keys, values ``[R, B, n, kv_heads, head_dim]``."""
        heads, kv_heads = self.config.heads, self.config.kv_heads
        normed = kernel.norm(hidden, self.weights[f"layers.{layer}.attention_norm"])
        projected = kernel.product(normed, self.weights[f"layers.{layer}.qkv"])
        by_head = projected.view(*hidden.shape[:-1], heads + 2 * kv_heads, self.config.head_dim)
        query, keys, values = torch.split(by_head, [heads, kv_heads, kv_heads], dim=-2)
        return query, keys, values

    def attend(self, query: Tensor, seen: Tensor, kernel: Kernel) -> Tensor:
        """Causal attention of the last n positions over all that are seen -> ``[R, B, n, width]``."""
        keys, values = seen  # each [R, B, past + n, kv_heads, head_dim]
        if self.config.positions == "rope" and self.config.rotation == "read":
            keys = kernel.rotate(keys, self.cos[: keys.shape[2]], self.sin[: keys.shape[2]])  # row t is position t
        if self.config.kv_heads < self.config.heads:
            group = self.config.heads // self.config.kv_heads
            # each [R, B, past + n, heads, head_dim]
            keys, values = (part.repeat_interleave(group, dim=3) for part in (keys, values))
        queries, total = query.shape[2], keys.shape[2]
        offset = total - queries  # position of the first query among the keys
        key_index = torch.arange(total, device=query.device)
        query_index = torch.arange(queries, device=query.device) + offset
        allowed = key_index <= query_index[:, None]  # [n, past + n]
        if self.config.window:
            allowed = allowed & (key_index > query_index[:, None] - self.config.window)  # itself and window - 1 before
        bias = None
        if self.config.positions == "alibi":
            bias = distance_bias(self.config.heads, query_index, key_index)  # [heads, n, past + n]
        return kernel.attention(query, keys, values, allowed, bias).flatten(-2)

    def mlp(self, layer: int, hidden: Tensor, kernel: Kernel) -> Tensor:
        """Normalise, expand, SiLU, contract: ``[R, B, n, width]`` to the same."""
        normed = kernel.norm(hidden, self.weights[f"layers.{layer}.mlp_norm"])
        expanded = kernel.silu(kernel.product(normed, self.weights[f"layers.{layer}.up"]))
        return kernel.product(expanded, self.weights[f"layers.{layer}.down"])
