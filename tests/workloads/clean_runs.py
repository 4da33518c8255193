"""Clean runs of every script over caches of every kind."""

from dataclasses import replace
from functools import cache

import torch

from mutkv.configuration import Configuration
from mutkv.grid.clean import run_clean
from mutkv.workloads import WORKLOADS

BASE = Configuration(depth=2, head_dim=4, vocab=32, prompt_length=6, steps=6)
SEEDS = (0, 1)
KINDS = {
    "grows": {},
    "grouped heads": {"heads": 4, "kv_heads": 2},
    "window": {"window": 4},
    "ring": {"window": 4, "ring": True},
    "ring, ALiBi": {"window": 4, "ring": True, "positions": "alibi"},
    "learned": {"positions": "learned"},
    "read, YaRN": {"rotation": "read", "rope_scaling": "yarn"},
    "preallocated": {"capacity": 48},
    "shared layers": {"sharing": 2},
    "paged": {"block": 3, "pool": 60},
    "paged, read": {"block": 4, "pool": 60, "rotation": "read"},
    "extras": {"adapters": 2, "media": 2, "block": 3, "pool": 60},
    "native": {"prefill_order": "native", "decode_order": "native"},
}
CANNOT = {"batch": ("ring", "block"), "rollback": ("ring",)}
"""Kinds of cache that a workload cannot have."""


def configurations(batch=1):
    """Yield (workload, kind, configuration) of all that can be, and that seeds can run together."""
    for workload in WORKLOADS:
        for kind, columns in KINDS.items():
            disagree = workload == "beam" and batch > 1 and "block" in columns
            if not disagree and not any(column in columns for column in CANNOT.get(workload, ())):
                yield workload, kind, replace(BASE, workload=workload, batch=batch, **columns)


@cache
def clean(configuration, seeds=SEEDS):
    """Run both paths of the clean engine."""
    with torch.no_grad():
        return run_clean(configuration, seeds, "cpu")


def script(workload, **columns):
    """Return the clean run of a workload on a cache that grows, or another one."""
    return clean(replace(BASE, workload=workload, **columns))


def tokens_of(baseline, seed=0):
    """Return the tokens of each conversation's rows of one seed, as lists."""
    return [row for one in baseline.recording.conversations for row in one.tokens[seed].tolist()]
