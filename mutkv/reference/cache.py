"""The KV cache: per layer, the keys and values of every token fed so far, in position order."""

import torch
from torch import Tensor

from mutkv.configuration import ModelConfig
from mutkv.kernels import DTYPES


class Cache:
    """Growing rows of keys and values; index 0 of the first dimension holds keys, index 1 values."""

    def __init__(self, config: ModelConfig, replicas: int, batch: int) -> None:
        shape = (2, replicas, batch, 0, config.kv_heads, config.head_dim)
        empty = torch.empty(shape, dtype=DTYPES[config.arithmetic.storage], device=config.device)
        self.rows = [empty] * config.depth  # per layer [2, R, B, length, kv_heads, head_dim]

    def read(self, layer: int) -> Tensor:
        """Return a layer's rows, ``[2, R, B, length, kv_heads, head_dim]``."""
        return self.rows[layer]

    def append(self, layer: int, new: Tensor) -> None:
        """Store rows ``[2, R, B, n, kv_heads, head_dim]`` behind those that are there."""
        self.rows[layer] = torch.cat([self.rows[layer], new], dim=3)  # [2, R, B, length + n, kv_heads, head_dim]
