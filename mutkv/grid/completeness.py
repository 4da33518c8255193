"""How much of a plan has a result: the first figure of every report, above any score."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Completeness:
    """Case counts; ``failed`` cases ran to an outcome other than ok, ``missing`` ones have no record."""

    planned: int
    done: int
    failed: int
    missing: int

    def __str__(self) -> str:
        """Return the counts as every report shows them."""
        return f"{self.planned} cases planned, {self.done} done, {self.failed} failed, {self.missing} missing"
