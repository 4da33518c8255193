"""Which points of a grid can exist: decoders, caches and scripts that fit together, refused before anything runs."""

from mutkv.configuration import Configuration
from mutkv.errors import Unsupported, UsageError, unknown_name
from mutkv.workloads import WORKLOADS, layout_of


def check_structure(configuration: Configuration) -> None:
    """Raise UsageError, with the fix, for a decoder or a workload that cannot exist."""
    for name in ("depth", "heads", "kv_heads", "head_dim", "vocab", "batch"):
        if getattr(configuration, name) < 1:
            raise UsageError(f"{name} {getattr(configuration, name)} is too small: use at least 1")
    rotary = {"rotation": "write", "rope_scaling": "none"}
    for name, plain in rotary.items():
        if configuration.positions != "rope" and getattr(configuration, name) != plain:
            fix = f"use '{plain}', or positions 'rope'"
            raise UsageError(f"{name} '{getattr(configuration, name)}' with {configuration.positions} positions: {fix}")
    if configuration.heads % configuration.kv_heads:
        raise UsageError(
            f"kv_heads {configuration.kv_heads} does not divide heads {configuration.heads}: use a divisor"
        )
    if configuration.positions == "rope" and configuration.head_dim % 2:
        raise UsageError(f"head_dim {configuration.head_dim} is odd, and rope rotates pairs: use an even one")
    check_cache(configuration)
    if not configuration.tokens:
        raise UsageError("prompt_length 0 with steps 0 observes nothing: use at least one step")
    if configuration.workload not in WORKLOADS:
        raise unknown_name("workload", configuration.workload, WORKLOADS)
    if configuration.workload != "decode" or configuration.block:
        check_script(configuration)


def check_cache(configuration: Configuration) -> None:
    """Raise UsageError, with the fix, for a cache that cannot exist or cannot hold what it is given."""
    reach = configuration.reach
    if 0 < configuration.capacity < reach:
        decode = f"prompt_length {configuration.prompt_length} + steps {configuration.steps}"
        need = decode if configuration.workload == "decode" else f"what {configuration.workload} feeds"
        raise UsageError(f"capacity {configuration.capacity} is less than {need}: use at least {reach}")
    kinds = {"capacity": configuration.capacity, "ring": configuration.ring, "block": configuration.block}
    if len(chosen := [name for name, value in kinds.items() if value]) > 1:
        raise UsageError(f"{chosen[0]} and {chosen[1]} are two kinds of cache: use one of them")
    if configuration.ring and not configuration.window:
        raise UsageError("ring without a window keeps nothing: set window, or leave out ring")
    if configuration.depth % configuration.sharing:
        raise UsageError(f"sharing {configuration.sharing} does not divide depth {configuration.depth}: use a divisor")


def check_script(configuration: Configuration) -> None:
    """Raise UsageError where a cache cannot do what the workload's script asks, or its pool is too small for it."""
    try:
        layout_of(configuration.group)
    except (UsageError, Unsupported) as error:
        fix = "leave this combination out, by 'variants' if need be"
        raise UsageError(f"workload '{configuration.workload}': {error}; {fix}") from None
