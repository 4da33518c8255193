"""A decoder: RMSNorm, multi-head or grouped-query attention, SiLU MLP, residuals; learned, rotary or ALiBi positions.

One ``forward`` serves both paths. With a cache it feeds new tokens over the stored past; without one it computes the
whole sequence. Names in shapes: R replicas, B rows, n new tokens, past stored tokens.
"""

import torch
from torch import Tensor

from mutkv.configuration import ModelConfig
from mutkv.protocol import Trace
from mutkv.reference.alibi import distance_bias
from mutkv.reference.ragged import attend_rows, rotate_rows, without_pads
from mutkv.reference.rotary import rotation_tables
from mutkv.reference.step import Step

PLACEHOLDER = 0
"""The token that stands for an image, a sound …: its embedding is that of the medium."""


class Decoder:
    """The model's weights and its forward pass."""

    def __init__(self, config: ModelConfig, weights: dict[str, Tensor]) -> None:
        self.config = config
        self.weights = weights
        self.cos, self.sin = rotation_tables(config)  # each [context, head_dim / 2]

    def forward(self, tokens: Tensor, step: Step) -> Trace:
        """Compute tokens ``[R, B, n]`` behind the columns that were fed before; with a cache, over its past."""
        positions = step.positions(step.start, step.start + tokens.shape[-1], tokens.device)  # [1 or B, n]
        hidden = self.embed(tokens, positions, step)  # [R, B, n, width]
        rows, layers = None, []
        for layer in range(self.config.depth):
            if layer % self.config.sharing == 0:
                rows = None  # this layer has keys and values of its own
            attended, rows = self.attention(layer, hidden, positions, step, rows)
            hidden = step.kernel.add(hidden, step.kernel.product(attended, self.weights[f"layers.{layer}.output"]))
            hidden = step.kernel.add(hidden, self.mlp(layer, hidden, step))
            layers.append((hidden, *rows[0], attended))
        final = step.kernel.norm(hidden, self.weights["final_norm"])
        logits = step.kernel.product(final, self.weights["unembedding"])  # [R, B, n, vocab]
        return Trace(logits, *zip(*layers, strict=True))

    def embed(self, tokens: Tensor, positions: Tensor, step: Step) -> Tensor:
        """Look up tokens ``[R, B, n]``, put media in place, and add learned positions where the model has them."""
        replica = torch.arange(tokens.shape[0], device=tokens.device)[:, None, None]
        hidden = self.weights["embedding"][replica, tokens]  # [R, B, n, width]
        if step.media is not None:
            medium = self.weights["media"][:, None, None, step.media]  # [R, 1, 1, width]
            hidden = torch.where((tokens == PLACEHOLDER)[..., None], medium, hidden)
        if self.config.positions == "learned":
            hidden = step.kernel.add(hidden, self.weights["positions"][:, positions])
        return hidden

    def attention(
        self, layer: int, hidden: Tensor, positions: Tensor, step: Step, rows: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Attend from the new tokens over past and new; return the result, and the rows that were new and seen.

        ``rows`` are those of the layer that this one shares keys and values with; None for a layer with its own.
        """
        query, projected_keys, values = self.project(layer, hidden, step)
        keys = projected_keys
        if self.config.positions == "rope":
            cos, sin = self.cos[positions], self.sin[positions]  # each [1 or B, n, head_dim / 2]
            query = rotate_rows(step.kernel, query, cos, sin)
            if self.config.rotation == "write":
                keys = rotate_rows(step.kernel, projected_keys, cos, sin)
        if rows is None:
            source = layer - layer % self.config.sharing  # the layer whose slot holds the rows
            new = torch.stack([keys, values])  # [2, R, B, n, kv_heads, head_dim]
            seen = new
            if step.cache is not None:
                past = step.cache.read(source)  # [2, R, B, past, kv_heads, head_dim]
                step.cache.append(source, new)  # now [2, R, B, past + n, kv_heads, head_dim]
                seen = torch.cat([past, new], dim=3)  # [2, R, B, past + n, kv_heads, head_dim]
            rows = new, seen
        return self.attend(query, rows[1], step), rows

    def project(self, layer: int, hidden: Tensor, step: Step) -> tuple[Tensor, Tensor, Tensor]:
        """Return query ``[R, B, n, heads, head_dim]`` and keys, values ``[R, B, n, kv_heads, head_dim]``."""
        heads, kv_heads = self.config.heads, self.config.kv_heads
        normed = step.kernel.norm(hidden, self.weights[f"layers.{layer}.attention_norm"])
        projected = step.kernel.product(normed, self.weights[f"layers.{layer}.qkv"])
        if step.adapter is not None:
            adapter = f"adapters.{step.adapter}.layers.{layer}"
            inner = step.kernel.product(normed, self.weights[f"{adapter}.down"])
            projected = step.kernel.add(projected, step.kernel.product(inner, self.weights[f"{adapter}.up"]))
        by_head = projected.view(*hidden.shape[:-1], heads + 2 * kv_heads, self.config.head_dim)
        query, keys, values = torch.split(by_head, [heads, kv_heads, kv_heads], dim=-2)
        return query, keys, values

    def attend(self, query: Tensor, seen: Tensor, step: Step) -> Tensor:
        """Causal attention of the last n columns over all that are seen -> ``[R, B, n, width]``."""
        keys, values = seen  # each [R, B, past + n, kv_heads, head_dim]
        queries, total = query.shape[2], keys.shape[2]
        if self.config.positions == "rope" and self.config.rotation == "read":
            positions = step.positions(0, total, query.device)  # [1 or B, past + n]
            keys = rotate_rows(step.kernel, keys, self.cos[positions], self.sin[positions])
        if self.config.kv_heads < self.config.heads:
            group = self.config.heads // self.config.kv_heads
            # each [R, B, past + n, heads, head_dim]
            keys, values = (part.repeat_interleave(group, dim=3) for part in (keys, values))
        offset = total - queries  # column of the first query among the keys
        key_index = torch.arange(total, device=query.device)
        query_index = torch.arange(queries, device=query.device) + offset
        allowed = key_index <= query_index[:, None]  # [n, past + n]
        if self.config.window:
            allowed = allowed & (key_index > query_index[:, None] - self.config.window)  # itself and window - 1 before
        bias = None
        if self.config.positions == "alibi":
            bias = distance_bias(self.config.heads, query_index, key_index)  # [heads, n, past + n]
        if step.pad is not None:
            allowed = without_pads(allowed, query_index, key_index, step.pad)  # [B, n, past + n]
        return attend_rows(step.kernel, query, keys, values, allowed, bias).flatten(-2)

    def mlp(self, layer: int, hidden: Tensor, step: Step) -> Tensor:
        """Normalise, expand, SiLU, contract: ``[R, B, n, width]`` to the same."""
        normed = step.kernel.norm(hidden, self.weights[f"layers.{layer}.mlp_norm"])
        expanded = step.kernel.silu(step.kernel.product(normed, self.weights[f"layers.{layer}.up"]))
        return step.kernel.product(expanded, self.weights[f"layers.{layer}.down"])
