"""Figures about checkers, computed from verdicts and labels alone: pure functions on frames that know no engine.

Frames go in, frozen dataclasses or frames come out; whoever runs engines and detectors makes the frame ``verdicts``
(case × detector), and whoever prints makes tables of the results.
"""

from mutkv.grid.completeness import Completeness
from mutkv.scoring.compare import Comparison, compare
from mutkv.scoring.gate import gate, shortfalls
from mutkv.scoring.interval import Interval
from mutkv.scoring.mutants import killers, mutant_scores
from mutkv.scoring.score import DetectorScore, Score, detector_scores, score_verdicts
from mutkv.scoring.split import case_column, score_by

__all__ = [
    "Comparison",
    "Completeness",
    "DetectorScore",
    "Interval",
    "Score",
    "case_column",
    "compare",
    "detector_scores",
    "gate",
    "killers",
    "mutant_scores",
    "score_by",
    "score_verdicts",
    "shortfalls",
]
