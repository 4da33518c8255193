"""What a detector is: a function from a case to a score, with the few facts that judging it needs.

A user's checker should be one decorated function and nothing else, so everything beside the function is a keyword of
the decorator, checked where it is written.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args, overload

from mutkv.configuration import Configuration
from mutkv.errors import UsageError, unknown_name

Needs = Literal["text", "logprobs", "logits", "kv", "hidden", "live"]
Check = Callable[[Any], Any]
Cost = Callable[[Configuration], float]

NEEDS: tuple[str, ...] = get_args(Needs)
OFFLINE = ("text", "logprobs", "logits")
"""Needs that a dataset answers; for the others a case is run again."""


@dataclass(frozen=True, slots=True)
class Detector:
    """A checker of KV caches; calling it calls its function."""

    name: str
    """Kebab-case, unique among the detectors that are judged together."""
    function: Check
    """Takes a ``Case`` (an engine if it needs ``live``); returns a score >= 0, or ``(score, flag)``."""
    needs: Needs = "logits"
    threshold: float = 0.0
    """A score above it is a flag, unless the function returns a flag of its own."""
    batched: bool = False
    """Whether the function takes C cases at once, as a leading dimension, and returns ``[C]``."""
    cost: Cost | None = None
    """Tokens processed beyond the served run, of a configuration; None where nobody said (``live`` is measured)."""
    summary: str = ""

    def __post_init__(self) -> None:
        """Refuse what could not be judged.

        Raises:
            UsageError: unknown ``needs``, a threshold that is no number >= 0, a name that is not kebab-case, or
                ``batched`` on a detector that is re-executed case by case.
        """
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise UsageError(f"detector '{self.name}': not a kebab-case name: give it one, as in name='my-check'")
        if self.needs not in NEEDS:
            raise UsageError(f"detector '{self.name}': {unknown_name('needs', str(self.needs), NEEDS)}")
        if isinstance(self.threshold, str) or not math.isfinite(self.threshold) or self.threshold < 0:
            raise UsageError(f"detector '{self.name}': threshold {self.threshold}: use a finite number >= 0")
        if self.batched and not self.offline:
            raise UsageError(f"detector '{self.name}': needs='{self.needs}' is called case by case: drop batched=True")

    @property
    def offline(self) -> bool:
        """Whether a dataset is all it needs."""
        return self.needs in OFFLINE

    def __call__(self, case: Any) -> Any:
        """Call the function."""
        return self.function(case)


@overload
def detector(function: Check, /) -> Detector: ...


@overload
def detector(
    *,
    needs: Needs = "logits",
    threshold: float = 0.0,
    name: str | None = None,
    batched: bool = False,
    cost: Cost | None = None,
) -> Callable[[Check], Detector]: ...


def detector(
    function: Check | None = None,
    /,
    *,
    needs: Needs = "logits",
    threshold: float = 0.0,
    name: str | None = None,
    batched: bool = False,
    cost: Cost | None = None,
) -> Detector | Callable[[Check], Detector]:
    """Make a function a detector: ``@detector`` or ``@detector(needs="logits", threshold=0.0)``.

    Args:
        function: Takes a case and returns a score >= 0 (higher is more suspicious), or ``(score, flag)``.
        needs: What it is shown: ``text``, ``logprobs`` or ``logits`` from a dataset; ``kv``, ``hidden`` or ``live``
            by running the case again.
        threshold: A score above it is a flag.
        name: Kebab-case; by default the function's name with dashes.
        batched: The function takes C cases at once (every tensor has a leading dimension C) and returns ``[C]``.
        cost: Tokens processed beyond the served run, of a ``Configuration``.

    Raises:
        UsageError: one of these is not valid.
    """

    def describe(checked: Check) -> Detector:
        own_name = kebab(getattr(checked, "__name__", type(checked).__name__)) if name is None else name
        return Detector(own_name, checked, needs, threshold, batched, cost, first_line(checked))

    return describe if function is None else describe(function)


def kebab(name: str) -> str:
    """Return a Python name as detectors are called: ``every_step`` becomes ``every-step``."""
    return name.strip("_").replace("_", "-").lower()


def first_line(checked: Check) -> str:
    """Return the first line of a function's docstring."""
    lines = (checked.__doc__ or "").strip().splitlines()
    return lines[0].strip() if lines else ""
