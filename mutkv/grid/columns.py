"""The dataset's columns and their types: what others may rely on. A change here is a new dataset version."""

import pyarrow as pa

DATASET_VERSION = 3

TEXT = pa.string()
COUNT = pa.int64()

CASES = pa.schema(
    {
        "case_id": TEXT,
        "configuration_id": TEXT,
        "content_key": TEXT,
        "scenario": TEXT,
        "mutant": TEXT,
        "mutant_class": TEXT,
        "kind": TEXT,
        "origin": TEXT,
        "path": TEXT,
        "equivalent": TEXT,
        "workload": TEXT,
        "seed": COUNT,
        "depth": COUNT,
        "heads": COUNT,
        "kv_heads": COUNT,
        "head_dim": COUNT,
        "vocab": COUNT,
        "prompt_length": COUNT,
        "steps": COUNT,
        "batch": COUNT,
        "positions": TEXT,
        "rotation": TEXT,
        "rope_scaling": TEXT,
        "window": COUNT,
        "capacity": COUNT,
        "ring": pa.bool_(),
        "block": COUNT,
        "pool": COUNT,
        "sharing": COUNT,
        "adapters": COUNT,
        "media": COUNT,
        "weights": TEXT,
        "sharpness": pa.float64(),
        "storage": TEXT,
        "accumulator": TEXT,
        "prefill_order": TEXT,
        "decode_order": TEXT,
        "device": TEXT,
        "outcome": TEXT,
        "error": TEXT,
        "floor": pa.float64(),
        "reached": pa.bool_(),
        "infected": pa.bool_(),
        "first_infected_layer": COUNT,
        "observable": pa.bool_(),
        "output_changed": pa.bool_(),
        "first_observable_request": COUNT,
        "first_observable_step": COUNT,
        "first_changed_request": COUNT,
        "first_changed_step": COUNT,
        "kv_max_abs": pa.float64(),
        "attended_max_abs": pa.float64(),
        "observations": COUNT,
    }
)

MEASUREMENTS = pa.schema({"case_id": TEXT, "quantity": TEXT, "part": TEXT, "value": pa.float64()})
"""What a study measured, one figure per row."""


def observations_schema(vocab: int) -> pa.Schema:
    """Return the schema of observations for one vocabulary."""
    logits = pa.list_(pa.float64(), vocab)
    return pa.schema(
        {
            "case_id": TEXT,
            "request": COUNT,
            "row": COUNT,
            "step": COUNT,
            "position": COUNT,
            "emitted": pa.bool_(),
            "forced_token": COUNT,
            "clean_argmax": COUNT,
            "clean_margin": pa.float64(),
            "max_abs": pa.float64(),
            "argmax_cached": COUNT,
            "argmax_full": COUNT,
            "logits_cached": logits,
            "logits_full": logits,
        }
    )
