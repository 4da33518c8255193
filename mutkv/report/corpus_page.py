"""The shipped mutants as Markdown tables: written by hand, they would say something else than the files before long."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import get_args

from mutkv.mutation.mutant import Mutant, Origin, Report

COLUMNS = (
    *("mutant", "what the line does", "path", "workloads", "needs"),
    *("first visible", "hidden by", "where from"),
)
EQUIVALENT_COLUMNS = ("mutant", "what the line does", "kind", "why it is equivalent")


def corpus_page(mutants: Mapping[str, Mutant], detectors: Collection[str]) -> str:
    """Return the counts, a section per class of faulty mutants, and one of the equivalents.

    A mutant whose ``hidden_by`` names all of ``detectors`` is hidden by "all detectors".
    """
    ordered = [mutant for _, mutant in sorted(mutants.items())]
    faulty = [mutant for mutant in ordered if not mutant.equivalent]
    equivalents = [mutant for mutant in ordered if mutant.equivalent]
    parts = [counts(ordered)]
    for name in sorted({mutant.mutant_class for mutant in faulty}):
        rows = [faulty_row(mutant, detectors) for mutant in faulty if mutant.mutant_class == name]
        parts += [f"### Class `{name}`", markdown_table(COLUMNS, rows)]
    parts += ["### Equivalents", markdown_table(EQUIVALENT_COLUMNS, map(equivalent_row, equivalents))]
    return "\n\n".join(parts) + "\n"


def counts(mutants: Sequence[Mutant]) -> str:
    """Return how many mutants there are, by origin, and how many of them are faulty or equivalent."""
    origins = Counter(mutant.origin for mutant in mutants)
    by_origin = ", ".join(f"{origins[origin]} {origin}" for origin in get_args(Origin))
    classes = {mutant.mutant_class for mutant in mutants if not mutant.equivalent}
    equivalents = sum(mutant.equivalent is not None for mutant in mutants)
    faulty = f"{len(mutants) - equivalents} faulty in {len(classes)} classes"
    return f"{len(mutants)} mutants: {by_origin}; {faulty}; {equivalents} equivalents."


def faulty_row(mutant: Mutant, detectors: Collection[str]) -> list[str]:
    """Return a mutant as a row of its class."""
    return [
        *(f"`{mutant.id}`", mutant.summary, mutant.path, quoted(mutant.workloads), quoted(mutant.features)),
        *(mutant.first_visible, hidden_by(mutant, detectors), where_from(mutant)),
    ]


def equivalent_row(mutant: Mutant) -> list[str]:
    """Return a mutant as a row of the equivalents."""
    return [f"`{mutant.id}`", mutant.summary, mutant.equivalent or "", mutant.reason or ""]


def hidden_by(mutant: Mutant, detectors: Collection[str]) -> str:
    """Return what does not see a mutant: detectors, then overrides of its witness."""
    if detectors and set(detectors) <= set(mutant.hidden_by):
        others = [text for text in mutant.hidden_by if text not in detectors]
        return ", ".join(["all detectors", *([quoted(others)] if others else [])])
    return quoted(mutant.hidden_by)


def where_from(mutant: Mutant) -> str:
    """Return a mutant's origin; of a reported one its reports, linked."""
    links = [report_link(report) for report in mutant.reports]
    return ", ".join(links if mutant.origin == "reported" and links else [mutant.origin, *links])


def report_link(report: Report) -> str:
    """Return a link to a report (GitHub leads from an issue's address to a pull request) and its confidence."""
    address = f"https://github.com/{report.repo}/issues/{report.number}"
    return f"[{report.repo}#{report.number}]({address}) ({report.confidence})"


def quoted(texts: Iterable[str]) -> str:
    """Return texts in code quotes, or ``none``."""
    return ", ".join(f"`{text}`" for text in texts) or "none"


def markdown_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table; a bar or a line break in a cell does not end it."""
    header = list(columns)
    return "\n".join([markdown_row(header), "|" + "---|" * len(header), *map(markdown_row, rows)])


def markdown_row(cells: Iterable[str]) -> str:
    """Return one row of a Markdown table."""
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
