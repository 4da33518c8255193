"""The Python API: the same steps as the command line, as functions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mutkv.detectors.detector import Detector
from mutkv.detectors.judge import judge
from mutkv.detectors.registry import default_detectors, find_detector
from mutkv.grid.plan import REFERENCE
from mutkv.grid.results import Results, load
from mutkv.mutation.copy import load_copy
from mutkv.mutation.registry import find, load_mutants
from mutkv.mutation.swap import swap
from mutkv.scoring import Score, score_verdicts

__all__ = ["inject", "load", "score"]


def score(
    results: Results | str | Path | None = None,
    detectors: Sequence[Detector | str] | Detector | str | None = None,
    label: str = "output-changed",
    seed: int = 0,
) -> Score:
    """Score detectors on a dataset.

    Args:
        results: A loaded dataset or its folder; the latest one by default.
        detectors: One or more detectors, names or ``file.py:function``; by default all shipped offline ones.
        label: What makes a faulty case positive: ``output-changed`` or ``observable``.
        seed: Seed of the bootstrap over mutants.

    Raises:
        UsageError: unknown detector or label, or no results.
    """
    opened = results if isinstance(results, Results) else load(results)
    if isinstance(detectors, Detector | str):
        detectors = [detectors]
    chosen = [find_detector(each) if isinstance(each, str) else each for each in detectors or default_detectors()]
    verdicts = judge(opened, chosen).frame
    return score_verdicts(verdicts, scenario=opened.scenario, completeness=opened.completeness, label=label, seed=seed)


def flagging(results: Results, names: Sequence[str]) -> list[str]:
    """Return which of the named detectors flag any faulty case of a dataset."""
    verdicts = judge(results, [find_detector(name) for name in names]).frame
    flagged = verdicts.loc[verdicts["flag"] & (verdicts["kind"] == "faulty"), "detector"]
    return [name for name in names if name in set(flagged)]


@contextmanager
def inject(mutant: str, target: str = REFERENCE, folders: Sequence[Path] = ()) -> Iterator[Any]:
    """Apply a mutant, shipped or from one of the folders, by its id while the block runs.

    For the reference engine yields an isolated copy of the package (``.module("engine").Engine``), the clean one stays
    as it is; for another package the function that holds the line is replaced, and restored at the end.
    """
    found = find(load_mutants(folders), mutant)
    if target == REFERENCE:
        yield load_copy(REFERENCE, found)
    else:
        with swap(found, target) as reach:
            yield reach
