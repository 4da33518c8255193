"""The speed benchmark compares like with like: its naive loop makes the very records of the grouped runner."""

import numpy as np
import pytest

from benchmarks.naive import naive_case
from benchmarks.throughput import throughput_plan
from mutkv.grid.plan import Group
from mutkv.grid.records import records
from mutkv.grid.run import run_group

SEEDS = 2


@pytest.fixture(scope="module")
def plan():
    return throughput_plan()


def test_the_throughput_scenario_has_3888_cases_in_eight_groups(plan):
    assert (len(plan.cases), len(plan.groups)) == (3888, 8)


@pytest.mark.parametrize("place", [0, 7])
def test_the_naive_loop_makes_the_records_of_the_grouped_runner(plan, place):
    group = plan.groups[place]
    few = Group(group.configuration, tuple(case for case in group.cases if case.configuration.seed < SEEDS))
    for outcome in run_group(few, plan.mutants, "cpu"):
        together = records(outcome, "cpu")
        for index, case in enumerate(outcome.cases):
            alone = naive_case(case, plan.mutants.get(case.mutant))
            assert alone.cases == {name: [values[index]] for name, values in together.cases.items()}
            for name, values in alone.observations.items():
                rows = together.observations[name].reshape(len(outcome.cases), -1, *values.shape[1:])[index]
                assert np.array_equal(values, rows), (case.mutant, name)
