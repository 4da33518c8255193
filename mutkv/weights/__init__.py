"""Weights for the reference engine: random, near-tied and trained, equal on all machines for a given seed."""

from mutkv.weights.load import check_weights, load_weights
from mutkv.weights.prompts import prompt_tokens, row_tokens

__all__ = ["check_weights", "load_weights", "prompt_tokens", "row_tokens"]
