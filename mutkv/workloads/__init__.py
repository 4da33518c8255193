"""Scripts of requests and events that exercise a cache; a workload holds no engine logic."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from mutkv.configuration import Configuration
from mutkv.kernels import Arithmetic
from mutkv.protocol import Engine
from mutkv.reference import Engine as ReferenceEngine
from mutkv.weights import load_weights
from mutkv.workloads.batch import batch
from mutkv.workloads.beam import beam
from mutkv.workloads.blocks import blocks
from mutkv.workloads.chunked import chunked
from mutkv.workloads.decode import decode
from mutkv.workloads.paths import as_recorded, at_observations, full_stepwise, full_traces
from mutkv.workloads.preempt import preempt
from mutkv.workloads.prefix import prefix
from mutkv.workloads.pressure import pressure
from mutkv.workloads.recording import Layout, Recording
from mutkv.workloads.resume import resume
from mutkv.workloads.rollback import rollback
from mutkv.workloads.run import Run
from mutkv.workloads.save_restore import save_restore
from mutkv.workloads.window import window

__all__ = [
    "WORKLOADS",
    "Layout",
    "Recording",
    "as_recorded",
    "at_observations",
    "full_stepwise",
    "full_traces",
    "layout_of",
    "record",
]

WORKLOADS: dict[str, Callable[[Run], None]] = {
    "decode": decode,
    "resume": resume,
    "chunked": chunked,
    "prefix": prefix,
    "batch": batch,
    "rollback": rollback,
    "beam": beam,
    "window": window,
    "blocks": blocks,
    "save-restore": save_restore,
    "preempt": preempt,
    "pressure": pressure,
}


def record(
    engine: Engine,
    configuration: Configuration,
    seeds: Sequence[int],
    clean: Recording | None = None,
    after_prefill: bool = False,
) -> Recording:
    """Run the configuration's script on an engine with one replica per seed.

    With ``clean``, the run repeats what that one decided; without, the engine's own logits decide. ``after_prefill``
    begins a ``decode`` behind the clean prefill, which is the same for an engine that prefills like the clean one.
    """
    start = clean if after_prefill and configuration.workload == "decode" else None
    run = Run(configuration, seeds, engine, iter(clean.decisions) if clean else None, start)
    WORKLOADS[configuration.workload](run)
    return run.recording()


@lru_cache(maxsize=1024)
def layout_of(configuration: Configuration) -> Layout:
    """Return where a configuration's script observes: that of the smallest engine on one seed."""
    small = replace(configuration.model(), depth=1, sharing=1, heads=1, kv_heads=1, head_dim=2, arithmetic=Arithmetic())
    weights = load_weights(small, "random", 1.0, (0,))
    return record(ReferenceEngine(small, weights), configuration, (configuration.seed,)).layout
