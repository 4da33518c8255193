"""The tables of rounding: against plain Python on the Parquet rows; and that the figure draws them."""

import numpy as np
import pytest
from scipy import stats

from mutkv.grid import grid
from mutkv.grid.plan import make_plan
from mutkv.grid.results import load
from mutkv.grid.scenario import Axes, Scenario
from mutkv.mutation.registry import load_mutants
from mutkv.report.summary import summary

from .datasets import chosen, deviation, recorded, worst
from .test_figures import FORMATS, WEIGHTS, axes_of, ends, rounding

SMALL = {"head_dim": 4, "vocab": 8, "prompt_length": 3, "steps": 5}
FORMAT = ("weights", "storage", "accumulator")
CACHED, TWO_ORDERS, CONTROL = "cached, one order", "cached, two orders", "no cache, two orders"
AXES = {
    "seed": [0, 1, 2, 3, 4],
    "weights": ["random", "near-tied"],
    "storage": ["float64", "bfloat16"],
    "accumulator": ["float64", "bfloat16"],
    "decode_order": ["sequential", "pairwise"],
}


def small_run(folder, axes, **fields):
    """Run a scenario of tiny engines into a folder and load it."""
    scenario = Scenario(name="small", summary="made by a test", axes=Axes(**SMALL | axes), **fields)
    mutants = {name: load_mutants()[name] for name in scenario.mutants}
    run = grid.prepare(make_plan(scenario, mutants, "cpu"), folder, 1)
    with grid.executor_for(1) as executor:
        list(run.execute(executor))
    return load(folder)


def rows_of(frame):
    return frame.to_dict(orient="records")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return small_run(tmp_path_factory.mktemp("rounding"), AXES, table="rounding")


@pytest.fixture(scope="module")
def tables(results):
    return summary(results)


@pytest.fixture(scope="module")
def compared(results):
    """Return the recorded cases by format and what they compare; controls of one order are no comparison."""
    groups = {}
    for case in recorded(results):
        split = case["prefill_order"] != case["decode_order"]
        if split or case["mutant"] == "clean":
            what = CONTROL if case["mutant"] == "control" else TWO_ORDERS if split else CACHED
            groups.setdefault((*(case[name] for name in FORMAT), what), []).append(case)
    return groups


def flips(case):
    """Return at how many observations the two paths of a case choose another token."""
    return sum(chosen(row["logits_cached"]) != chosen(row["logits_full"]) for row in case["rows"])


def test_agreement_is_over_all_positions_of_the_two_full_passes_of_each_format(tables, compared):
    rows = {tuple(row[name] for name in FORMAT): row for row in rows_of(tables["agreement"])}
    assert {(*key, CONTROL) for key in rows} == {key for key in compared if key[-1] == CONTROL}
    assert len(rows) == len(tables["agreement"]) == 8
    for key, row in rows.items():
        cases = compared[*key, CONTROL]
        equal = [each["logits_cached"] == each["logits_full"] for case in cases for each in case["rows"]]
        assert (row["runs"], row["positions"]) == (5, 30) == (len(cases), len(equal))
        assert row["equal %"] == pytest.approx(100 * sum(equal) / 30)
        assert row["max|Δ|"] == worst(cases)
        assert row["argmax flips"] == sum(map(flips, cases))
    assert {row["argmax flips"] for row in rows.values()} > {0}


@pytest.mark.parametrize("weights", ["random", "near-tied"])
def test_two_passes_agree_at_every_position_when_bfloat16_is_stored_and_float64_accumulates(tables, weights):
    table = tables["agreement"].set_index([*FORMAT])
    exact, rounded = table.loc[weights, "bfloat16", "float64"], table.loc[weights, "bfloat16", "bfloat16"]
    assert (exact["equal %"], exact["max|Δ|"], exact["argmax flips"]) == (100, 0, 0)
    assert rounded["equal %"] < 50
    assert rounded["max|Δ|"] > 1e-3


def test_flipped_runs_are_counted_for_the_first_three_seeds_and_for_all_with_wilsons_interval(tables, compared):
    found = {}
    for row in rows_of(tables["flips"]):
        found.setdefault((*(row[name] for name in FORMAT), row["comparison"]), []).append(row)
    assert found.keys() == compared.keys()
    for key, (few, every) in found.items():
        for row, cases in ((few, [case for case in compared[key] if case["seed"] < 3]), (every, compared[key])):
            flipped = sum(flips(case) > 0 for case in cases)
            assert (row["runs"], row["flipped"]) == (len(cases), flipped)
            interval = stats.binomtest(flipped, len(cases)).proportion_ci(method="wilson")
            assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high), abs=1e-12)
        assert (few["runs"], every["runs"]) == (3, 5)


def test_cached_runs_in_one_order_never_flip_nor_deviate(tables, compared):
    rows = [row for row in rows_of(tables["flips"]) if row["comparison"] == CACHED]
    assert len(rows) == 16
    assert {row["flipped"] for row in rows} == {0}
    assert {
        deviation(each) for key, cases in compared.items() if key[-1] == CACHED for c in cases for each in c["rows"]
    } == {0}


def test_in_two_orders_tokens_flip_with_a_cache_and_without_one_where_ties_are_near(tables):
    flipped = tables["flips"].query("weights == 'near-tied' and runs == 5").set_index(["storage", "accumulator"])
    rows = flipped.loc["bfloat16", "bfloat16"].set_index("comparison")["flipped"]
    assert (rows[CACHED], rows[TWO_ORDERS] > 0, rows[CONTROL] > 0) == (0, True, True)


def test_the_table_of_runs_has_every_count_of_flipped_runs_in_the_column_of_its_comparison(tables):
    runs, counted = tables["runs"], tables["flips"]
    names = [CACHED, TWO_ORDERS, CONTROL]
    assert list(runs) == ["seeds", *FORMAT, *names]
    assert len(counted) == runs[names].count().sum() == 48
    table = runs.set_index(["seeds", *FORMAT])
    for row in rows_of(counted):
        place = (row["seeds"], *(row[name] for name in FORMAT))
        assert table.loc[place, row["comparison"]] == f"{row['flipped']} of {row['runs']}"


def test_formats_stand_in_the_order_of_the_scenario_in_every_table(tables):
    expected = [
        (weights, storage, accumulator)
        for weights in ("random", "near-tied")
        for storage in ("float64", "bfloat16")
        for accumulator in ("float64", "bfloat16")
    ]
    for table in tables.values():
        assert list(dict.fromkeys(table[[*FORMAT]].itertuples(index=False, name=None))) == expected


def test_with_three_seeds_there_is_one_number_of_runs(tmp_path):
    tables = summary(small_run(tmp_path, {"seed": [0, 1, 2], "decode_order": "pairwise"}, table="rounding"))
    assert tables["flips"]["runs"].tolist() == [3, 3]
    assert tables["runs"]["seeds"].tolist() == ["first 3"]


def test_seeds_of_which_none_is_among_the_first_three_are_one_number_of_runs(tmp_path):
    tables = summary(small_run(tmp_path, {"seed": [7, 8], "decode_order": "pairwise"}, table="rounding"))
    assert tables["flips"]["runs"].tolist() == [2, 2]


def test_a_mutant_that_a_user_adds_is_no_comparison_of_a_right_engine(tmp_path, tables):
    axes = {**AXES, "weights": "random", "storage": "float64", "accumulator": "float64"}
    found = summary(small_run(tmp_path, axes, table="rounding", mutants=("tril",)))["flips"]
    same = tables["flips"].query("weights == 'random' and storage == 'float64' and accumulator == 'float64'")
    assert rows_of(found) == rows_of(same)


def test_rounding_draws_the_agreement_of_random_weights_and_the_flips_of_most_runs_with_their_intervals():
    tables, axes = rounding(), axes_of("rounding")
    agreement = tables["agreement"].query("weights == 'random'").set_index(["storage", "accumulator"])["equal %"]
    for storage, bars in zip(FORMATS, axes[0].containers[:3], strict=True):
        assert [bar.get_height() for bar in bars] == [agreement[storage, accumulator] for accumulator in FORMATS]
    flips = tables["flips"].query("runs == 40").set_index(["weights", "comparison"])
    for weights, panel in zip(WEIGHTS, axes[1:], strict=True):
        for comparison, bars in zip((TWO_ORDERS, CONTROL), panel.containers, strict=True):
            rows = flips.loc[weights, comparison]
            np.testing.assert_allclose(bars.lines[0].get_ydata().astype(float), 100 * rows["flipped"] / 40)
            np.testing.assert_allclose(ends(bars), 100 * rows[["low", "high"]], atol=1e-12)
