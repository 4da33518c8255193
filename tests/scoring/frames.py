"""Verdict frames for the tests of scoring: small ones written by hand, large ones drawn at random."""

import numpy as np
import pandas as pd

from mutkv.scoring import Completeness

WHOLE = Completeness(planned=8, done=8, failed=0, missing=0)
ASKED = {"scenario": "hand", "completeness": WHOLE}

DEFAULTS = {
    "detector": "one-step",
    "threshold": 0.0,
    "score": 0.0,
    "flag": False,
    "crashed": False,
    "cost_tokens": 4.0,
    "mutant": "clean",
    "mutant_class": None,
    "origin": None,
    "path": None,
    "kind": "clean",
    "outcome": "ok",
    "observable": False,
    "output_changed": False,
    "workload": "decode",
    "seed": 0,
    "depth": 1,
}
FAULTY = {"kind": "faulty", "path": "cached", "mutant_class": "position", "origin": "seed"}


def verdicts_of(*rows):
    """Make a frame from dicts; a row without ``case_id`` is a case of its own."""
    frame = pd.DataFrame([{"case_id": f"case-{i}", **DEFAULTS, **row} for i, row in enumerate(rows)])
    return frame.astype({"output_changed": "boolean", "observable": "boolean"})


def faulty(mutant, changed=True, **row):
    """One verdict on a faulty case, flagged if its score is positive."""
    return {**FAULTY, "mutant": mutant, "output_changed": changed, "flag": row.get("score", 0.0) > 0, **row}


def benign(kind="clean", **row):
    """One verdict on a benign case, flagged if its score is positive."""
    return {"kind": kind, "mutant": kind, "flag": row.get("score", 0.0) > 0, **row}


def random_verdicts(seed, cases=200, mutants=6, detectors=("one-step",), levels=5):
    """Draw ``cases`` cases judged by every detector; few score levels make many ties, the highest is infinite."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["faulty", "clean", "control", "equivalent-bitwise"], cases, p=[0.6, 0.2, 0.1, 0.1])
    names = np.where(kinds == "faulty", rng.choice([f"mutant-{i}" for i in range(mutants)], cases), kinds)
    grid = pd.DataFrame({"case_id": [f"case-{i}" for i in range(cases)], "kind": kinds, "mutant": names})
    grid = grid.assign(output_changed=(kinds == "faulty") & (rng.random(cases) < 0.6), depth=rng.integers(1, 4, cases))
    frames = []
    for detector in detectors:
        level = rng.integers(0, levels, cases) + grid["output_changed"]
        score = np.where(level == levels, np.inf, level / levels)
        frames.append(grid.assign(detector=detector, score=score, flag=score > 0.5))
    frame = pd.concat(frames, ignore_index=True)
    frame = frame.assign(**{name: value for name, value in DEFAULTS.items() if name not in frame})
    faulty_rows = frame["kind"] == "faulty"
    return frame.assign(path=np.where(faulty_rows, "cached", None), observable=faulty_rows)
