"""The exit code of a scoring, kept apart from the figures because a CI job acts on it without reading them."""

from collections.abc import Collection

from mutkv.exit_codes import ExitCode
from mutkv.scoring.score import DetectorScore, Score

ROUNDING = 1e-12
"""A mean of exact thirds may fall short of the threshold by its last bit; that is no regression."""


def gate(
    score: Score,
    fail_under: float | None = None,
    fail_under_low: float | None = None,
    named: Collection[str] = (),
) -> ExitCode:
    """Return how the command leaves; the thresholds apply to the headline recall of each named detector, or of all.

    Ordered by what the figures are worth, because 0 and 1 are both statements about the detector and may be made only
    on whole data:

    1. ``USAGE`` if a detector crashed on all its cases: it is broken, and a rerun will not help.
    2. ``INCOMPLETE`` if cases are missing, any verdict crashed (it counts as not flagged, so the recall may be low for
       that reason alone), a named detector has no verdict, or a threshold is set for a recall that is undefined or
       was taken on a part of the cases. A job that retries on 3 meets the threshold once the data are whole; one that
       reports a regression on 1 never reports a crash as one.
    3. ``BELOW_THRESHOLD`` if a recall, or its lower bound, is below its threshold; equal is not below.
    4. ``OK``. A case whose *engine* crashed or timed out is a result like any other and changes nothing.
    """
    gated = [detector for detector in score.detectors if not named or detector.name in named]
    limits = [limit for limit in (fail_under, fail_under_low) if limit is not None]
    if any(0 < detector.cases == detector.crashed for detector in score.detectors):
        return ExitCode.USAGE
    if score.completeness.missing or any(detector.crashed for detector in score.detectors):
        return ExitCode.INCOMPLETE
    if not _measured(gated, named) or (limits and not all(_decidable(detector, score) for detector in gated)):
        return ExitCode.INCOMPLETE
    if fail_under_low is not None and any(detector.recall.low is None for detector in gated):
        return ExitCode.INCOMPLETE
    below = any(_below(detector.recall.value, fail_under) for detector in gated)
    below_low = any(_below(detector.recall.low, fail_under_low) for detector in gated)
    return ExitCode.BELOW_THRESHOLD if below or below_low else ExitCode.OK


def shortfalls(score: Score, fail_under: float | None = None, fail_under_low: float | None = None) -> list[str]:
    """Return a line for each detector that is below a threshold, or whose recall cannot be compared with it."""
    lines = []
    for detector in score.detectors:
        bounds = (("recall", detector.recall.value, fail_under), ("lower bound", detector.recall.low, fail_under_low))
        for what, figure, limit in bounds:
            if limit is not None and (figure is None or _below(figure, limit)):
                shown = "n/a" if figure is None else f"{figure:.3f}"
                lines.append(f"detector '{detector.name}': {what} {shown}, asked for at least {limit:g}")
    return lines


def _measured(gated: list[DetectorScore], named: Collection[str]) -> bool:
    """Whether there is a verdict at all, and one of every named detector."""
    with_verdicts = {detector.name for detector in gated if detector.cases}
    return bool(with_verdicts) and with_verdicts.issuperset(named)


def _decidable(detector: DetectorScore, score: Score) -> bool:
    """Whether the headline recall is defined and taken on all cases."""
    return detector.recall.value is not None and detector.cases == score.positives + score.negatives + score.harmless


def _below(figure: float | None, limit: float | None) -> bool:
    return figure is not None and limit is not None and figure < limit - ROUNDING
