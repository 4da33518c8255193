"""Checkers of KV caches: what a detector is, the shipped ones, and judging a dataset with them."""

from mutkv.detectors.case import Case
from mutkv.detectors.detector import Detector, detector
from mutkv.detectors.judge import Verdicts, judge
from mutkv.detectors.registry import default_detectors, find_detector, load_detectors, shipped_detectors

__all__ = [
    "Case",
    "Detector",
    "Verdicts",
    "default_detectors",
    "detector",
    "find_detector",
    "judge",
    "load_detectors",
    "shipped_detectors",
]
