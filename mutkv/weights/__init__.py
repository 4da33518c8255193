"""Weights for the reference engine: random, near-tied and trained, equal on all machines for a given seed."""

from mutkv.weights.load import load_weights

__all__ = ["load_weights"]
