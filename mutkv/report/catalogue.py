"""What ships with mutkv, as tables and pages: scenarios, mutants, detectors."""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd
from rich.console import Group
from rich.syntax import Syntax
from rich.text import Text

from mutkv.configuration import Configuration
from mutkv.detectors.registry import default_detectors, load_detectors
from mutkv.grid.plan import make_plan, select_mutants
from mutkv.grid.scenario import find_scenario, scenario_files
from mutkv.mutation.mutant import Mutant
from mutkv.mutation.patch import diff
from mutkv.mutation.registry import is_shipped, load_mutants


def scenarios_table() -> pd.DataFrame:
    """One row per shipped scenario, with its number of cases."""
    shipped = load_mutants()
    rows = []
    for name in scenario_files():
        scenario = find_scenario(name)
        plan = make_plan(scenario, select_mutants(scenario, shipped, shipped), "cpu")
        configurations = sum(1 for _ in scenario.configurations())
        rows.append((name, configurations, len(plan.cases), scenario.summary))
    return pd.DataFrame(rows, columns=["scenario", "configurations", "cases", "what it is"])


def mutants_table(mutants: Mapping[str, Mutant]) -> pd.DataFrame:
    """One row per mutant."""
    rows = [(m.id, m.mutant_class, m.origin, m.path, m.first_visible, m.summary) for m in mutants.values()]
    return pd.DataFrame(rows, columns=["mutant", "class", "origin", "path", "first visible", "what it does"])


def detectors_table() -> pd.DataFrame:
    """One row per registered detector."""
    defaults = {detector.name for detector in default_detectors()}
    rows = [
        (d.name, d.needs, d.threshold, "yes" if d.name in defaults else "no", d.summary.rstrip("."))
        for d in load_detectors().values()
    ]
    return pd.DataFrame(rows, columns=["detector", "needs", "threshold", "by default", "rule"])


def mutant_page(mutant: Mutant) -> Group:
    """A mutant for reading: mechanism, diff in colour, what hides it, provenance and witness."""
    hidden = ", ".join(mutant.hidden_by) or "nothing known"
    lines = [
        f"class {mutant.mutant_class}, origin {mutant.origin}, path {mutant.path}, acts {mutant.acts}",
        f"first visible: {mutant.first_visible}; hidden by: {hidden}",
        *(f"report: {r.repo}#{r.number} (confidence {r.confidence}) {r.note}" for r in mutant.reports),
        f"witness: {witness_text(mutant.witness_configuration())}",
    ]
    return Group(
        Text(f"{mutant.id}: {mutant.summary}", style="bold"),
        Text(" ".join((mutant.mechanism or "").split())),
        Syntax(diff(mutant), "diff", theme="ansi_dark", background_color="default", word_wrap=True),
        *map(Text, lines),
    )


def reproducing(mutant: Mutant, folders: Iterable[Path]) -> list[str]:
    """Return the commands that check and run a mutant, to paste; they name the one of the folders that holds it."""
    found = next((folder for folder in folders if mutant.source_path.is_relative_to(folder)), None)
    option = "" if found is None or is_shipped(mutant) else f" --mutants {shlex.quote(str(found))}"
    return [f"{verb} it: mutkv mutants {verb} {mutant.id}{option}" for verb in ("check", "run")]


def witness_text(witness: Configuration) -> str:
    """Return the columns of a witness that are numbers or differ from the default."""
    default = Configuration().columns()
    shown = {
        name: value for name, value in witness.columns().items() if isinstance(value, int) or value != default[name]
    }
    return ", ".join(f"{name} = {value}" for name, value in shown.items())
