"""Every detector on every recorded case: the frame ``verdicts`` that scoring works on.

A dataset is read part by part, and each part is shown to all detectors before the next one. What a detector does wrong
becomes a crashed verdict and one line of warning; it never ends the others' scoring.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pandas as pd
import torch

from mutkv.detectors.blocks import Block, blocks
from mutkv.detectors.detector import Detector
from mutkv.detectors.inside import judge_engine, judge_inside
from mutkv.detectors.tally import Tally
from mutkv.detectors.verdict import judge_batch, judge_one
from mutkv.errors import UsageError
from mutkv.grid.replay import Subject, check_engine, subject_of
from mutkv.grid.results import Results
from mutkv.grid.source import engine_digest

Progress = Callable[[int, int], None]
"""Called with the number of cases judged so far, and of all."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What all detectors say, and what went wrong in one line each."""

    frame: pd.DataFrame
    """One row per detector and case of outcome ok, detector by detector: the columns of ``cases``, and detector,
    threshold, score, flag, crashed, cost_tokens. Cases where a detector is not applicable are left out."""
    warnings: tuple[str, ...]


def judge(results: Results, detectors: Sequence[Detector], on_progress: Progress | None = None) -> Verdicts:
    """Return the verdicts of detectors on a dataset's cases of outcome ok.

    Raises:
        UsageError: no detectors, two of one name, cases that must be run again but cannot be, or cases of a study.
    """
    chosen = distinct(detectors)
    if results.study is not None:
        fix = f"'mutkv grid show {results.folder}' prints what it measured"
        raise UsageError(f"{results.folder}: a study has no observations to judge: {fix}")
    if not all(detector.offline for detector in chosen):
        check_engine(results)
    cases = results.cases
    cases = cases[cases["outcome"] == "ok"].reset_index(drop=True)
    tallies = [Tally(detector, cases) for detector in chosen]
    done = 0
    with quiet_torch():
        for block in blocks(results, cases):
            judge_block(results, cases, block, tallies)
            done += len(block.seeds)
            if on_progress is not None:
                on_progress(done, len(cases))
    frame = pd.concat([tally.frame() for tally in tallies], ignore_index=True)
    return Verdicts(frame, tuple(line for tally in tallies for line in tally.warnings()))


def judgeable(results: Results, detectors: Sequence[Detector]) -> list[Detector]:
    """Return the detectors that can judge a dataset: those that look inside take the engine that made it."""
    same_engine = results.plan["engine_digest"] == engine_digest()
    return [detector for detector in detectors if detector.offline or same_engine]


def distinct(detectors: Sequence[Detector]) -> list[Detector]:
    """Return the detectors, each once; a name stands for one detector, because frames tell them apart by it."""
    chosen = list(dict.fromkeys(detectors))
    names = [detector.name for detector in chosen]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(f"two detectors are called '{twice[0]}': rename one, as in @mutkv.detector(name='my-check')")
    if not chosen:
        raise UsageError("no detectors to judge: name at least one")
    return chosen


@contextmanager
def quiet_torch() -> Iterator[None]:
    """Run without gradients, and on one thread: for tensors as tiny as a case's, more cost far more than they give."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_num_threads(threads)


def judge_block(results: Results, cases: pd.DataFrame, block: Block, tallies: Sequence[Tally]) -> None:
    """Show one block to every detector."""
    again = []
    for tally in tallies:
        if tally.detector.offline:
            judge_offline(block, tally)
        else:
            again.append(tally)
    if again:
        for subject, part in by_subject(results, cases, block):
            judge_again(part, subject, again)


def judge_offline(block: Block, tally: Tally) -> None:
    """Show a block's cases to a detector: all at once if it can, alone where that fails, lest one take the rest."""
    detector, count = tally.detector, len(block.seeds)
    if not detector.batched:
        verdicts = [judge_one(detector, block.case(place, detector.needs)) for place in range(count)]
        tally.add_each(block.index, verdicts, block.group)
        return
    found = judge_batch(detector, block.batch(detector.needs), count)
    if found is not None:
        tally.add(block.index, *found, block.group)
        return
    alone = [block.take([place]).batch(detector.needs) for place in range(count)]
    tally.add_each(block.index, [judge_one(detector, one) for one in alone], block.group)


def by_subject(results: Results, cases: pd.DataFrame, block: Block) -> Iterator[tuple[Subject, Block]]:
    """Yield a block's cases mutant by mutant, all seeds of each."""
    mutants, devices = (cases[name].iloc[block.index].tolist() for name in ("mutant", "device"))
    for name in dict.fromkeys(mutants):
        places = [place for place, mutant in enumerate(mutants) if mutant == name]
        yield subject_of(results, name, devices[places[0]]), block.take(places)


def judge_again(part: Block, subject: Subject, tallies: Sequence[Tally]) -> None:
    """Show the cases of one subject, run again, to the detectors that need that."""
    inside = [tally for tally in tallies if tally.detector.needs != "live"]
    if inside:
        verdicts = judge_inside([tally.detector for tally in inside], part, subject)
        for tally, found in zip(inside, verdicts, strict=True):
            tally.add_each(part.index, found, part.group)
    for tally in tallies:
        if tally.detector.needs == "live":
            found = [judge_engine(tally.detector, part, place, subject) for place in range(len(part.seeds))]
            tally.add_each(part.index, found, part.group)
