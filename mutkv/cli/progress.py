"""Progress of long work on stderr: done, rate, time left and outcomes; a line now and then where it is no terminal."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

SILENCE = 30.0
"""Seconds after which a log, where no bar can be shown, gets a line."""


class Advance(Protocol):
    """Called with how many more ended with which outcome."""

    def __call__(self, outcomes: Mapping[str, int]) -> None:
        """Add them to the bar."""


class RateColumn(ProgressColumn):
    """Finished per second."""

    def render(self, task: Task) -> Text:
        """Return the rate, empty before the first one is done."""
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="progress.data.speed")


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Advance]:
    """Show a bar while the block runs."""
    bars = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), RateColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    outcome = TextColumn("{task.fields[outcomes]}")
    with Progress(*bars, outcome, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=total, outcomes="")
        seen: Counter[str] = Counter()
        said = [monotonic()]

        def advance(outcomes: Mapping[str, int]) -> None:
            seen.update(outcomes)
            text = ", ".join(f"{count} {name}" for name, count in sorted(seen.items()))
            if not console.is_terminal and monotonic() - said[0] > SILENCE:
                said[0] = monotonic()
                console.print(f"{title}: {sum(seen.values())} of {total}: {text}", highlight=False)
            progress.update(task, advance=sum(outcomes.values()), outcomes=text)

        yield advance
