"""What the code has, the pages name: columns, exit codes, keys, detectors, scenarios, mutants, figures."""

import dataclasses
import json
import re

import pyarrow as pa
import pytest

from mutkv.configuration import CONFIGURATION_COLUMNS, Configuration
from mutkv.detectors import shipped_detectors
from mutkv.exit_codes import ExitCode
from mutkv.grid.columns import CASES, DATASET_VERSION, MEASUREMENTS, observations_schema
from mutkv.grid.scenario import FOLLOWED, Axes, Scenario
from mutkv.mutation.mutant import Mutant, Patch, Report
from mutkv.mutation.registry import load_shipped
from mutkv.report.catalogue import scenarios_table
from mutkv.report.summary import SUMMARIES
from mutkv.resources import shipped
from mutkv.scoring import DetectorScore, Score
from mutkv.workloads import WORKLOADS

from .pages import ROOT, named, row_of, tables, text_of

TYPES = {pa.string(): "text", pa.int64(): "int64", pa.float64(): "float64", pa.bool_(): "bool"}
MUTANTS = load_shipped(shipped("mutants"))


def documented_columns(heading):
    section = text_of("docs/results.md").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.MULTILINE)


def test_every_column_of_cases_is_in_the_results_page_with_its_type_and_order():
    assert documented_columns("cases") == [(field.name, TYPES[field.type]) for field in CASES]


def test_every_column_of_observations_is_in_the_results_page_with_its_type_and_order():
    schema = observations_schema(7)
    expected = [(field.name, TYPES.get(field.type, "float64 × vocab")) for field in schema]
    assert documented_columns("observations") == expected


def test_every_column_of_measurements_is_in_the_results_page_with_its_type_and_order():
    assert documented_columns("measurements") == [(field.name, TYPES[field.type]) for field in MEASUREMENTS]


def test_the_results_page_names_the_dataset_version_and_every_summary_table():
    assert f"The version is {DATASET_VERSION};" in text_of("docs/results.md")
    section = text_of("docs/results.md").split("## The tables of `grid run`")[1]
    assert set(re.findall(r"^- `([\w-]+)`", section, re.MULTILINE)) == set(SUMMARIES)


def test_every_exit_code_is_in_its_page_with_its_number():
    rows = [row for row in tables("docs/exit-codes.md") if row[0].isdigit()]
    assert [(int(row[0]), row[1].strip("`")) for row in rows] == [(code.value, code.name) for code in ExitCode]
    assert all(row[2] for row in rows)


@pytest.mark.parametrize("detector", shipped_detectors(), ids=lambda detector: detector.name)
def test_every_shipped_detector_has_a_row_with_its_need_its_threshold_and_its_cost(detector):
    row = row_of("docs/detectors.md", detector.name)
    assert row[1] == detector.needs
    configuration = Configuration(prompt_length=5, steps=11, batch=3)
    formula = row[4].replace("·", "*").replace(" ", "")
    assert eval(formula, {"P": 5, "S": 11, "B": 3, "min": min}) == detector.cost(configuration)
    assert float(re.search(r"score > ([\d.e-]+)", row[3])[1]) == detector.threshold


def test_every_scenario_has_a_row_with_its_sizes():
    for found in scenarios_table().itertuples():
        row = next(row for row in tables("docs/scenarios.md") if row[0] == f"`{found.scenario}`" and row[1].isdigit())
        assert (int(row[1]), int(row[2])) == (found.configurations, found.cases)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_every_shipped_mutant_has_a_row_that_says_what_its_file_says(mutant):
    row = row_of("docs/mutants.md", mutant.id)
    assert row[1] == mutant.summary
    if mutant.equivalent:
        assert row[2:] == [mutant.equivalent, mutant.reason]
        return
    assert f"| `{mutant.id}` |" in text_of("docs/mutants.md").split(f"\n### Class `{mutant.mutant_class}`\n")[1]
    quoted = [set(re.findall(r"`([^`]+)`", text)) for text in row]
    assert (row[2], quoted[3], quoted[4]) == (mutant.path, set(mutant.workloads), set(mutant.features))
    assert row[5] == mutant.first_visible
    every = [detector.name for detector in shipped_detectors()] if "all detectors" in row[6] else []
    assert {*every, *quoted[6]} == set(mutant.hidden_by)
    assert [f"{report.repo}#{report.number}" in row[7] for report in mutant.reports] == [True] * len(mutant.reports)


def test_every_key_of_a_mutants_file_is_documented():
    keys = {field.alias or name for name, field in Mutant.model_fields.items()} - {"patch"}
    keys |= {"patch.TARGET"} | {f"patch.TARGET.{name}" for name in Patch.model_fields}
    keys |= {f"reports.{name}" for name in Report.model_fields}
    assert keys <= named("docs/mutants.md")


def test_every_key_of_a_scenarios_file_is_documented():
    assert set(Scenario.model_fields) | set(CONFIGURATION_COLUMNS) <= named("docs/scenarios.md")


@pytest.mark.parametrize("axis", Axes.model_fields)
def test_every_axis_is_documented_with_its_default(axis):
    default = Axes.model_fields[axis].default
    [shown] = [row[1] for row in tables("docs/scenarios.md") if row[0] == f"`{axis}`" and len(row) == 3]
    if axis in FOLLOWED:
        assert shown == f"as `{FOLLOWED[axis]}`"
    else:
        [value] = default
        assert shown == f"`{json.dumps(value)}`"  # as in TOML


def test_every_workload_is_documented_in_the_order_of_the_code():
    section = text_of("docs/scenarios.md").split("\n## The workloads\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `([\w-]+)` \| ", section, re.MULTILINE) == list(WORKLOADS)


def test_every_key_of_the_score_json_is_documented():
    keys = {field.name for kind in (Score, DetectorScore) for field in dataclasses.fields(kind)} - {"cases"}
    assert keys | {"by"} <= named("docs/scoring.md")


def test_the_design_page_has_one_line_per_module_and_no_other():
    folder, listed = "", []
    for line in text_of("DESIGN.md").split("\n## The life of a case")[0].splitlines():
        if heading := re.match(r"### `(mutkv/[\w/]*)`", line):
            folder = heading[1]
        if module := re.match(r"- `(\w+\.py)`: \S", line):
            listed.append(folder + module[1])
    modules = [path.relative_to(ROOT).as_posix() for path in (ROOT / "mutkv").rglob("*.py")]
    assert sorted(listed) == sorted(modules)


def test_the_changelog_begins_with_the_version_of_the_package():
    import mutkv

    heading = re.search(r"^## (\S+) - (\S+)$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert heading[1] == mutkv.__version__
    assert f"version: {heading[1]}\ndate-released: {heading[2]}\n" in text_of("CITATION.cff")
    lines = [line for line in text_of("CHANGELOG.md").splitlines() if line.startswith("-")]
    assert all(re.match(r"- (New|Changed|Fixed|Internal): ", line) for line in lines)
