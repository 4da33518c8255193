"""The tables of the length profile: against plain Python on the Parquet rows; and that the figure draws them."""

from statistics import median

import pytest

from mutkv.report.summary import summary

from .datasets import chosen, deviation, recorded
from .test_figures import MUTANTS as DRAWN_MUTANTS
from .test_figures import axes_of, draws, length_profile
from .test_rounding import rows_of, small_run

MUTANTS = ("tril", "stale", "evict", "posoff")
AXES = {"seed": [0, 1, 2], "sharpness": [1.0, 3.0], "weights": ["random", "near-tied"], "prompt_length": [0, 2, 5]}
PROBE = ("weights", "sharpness", "prompt_length", "step")
RULES = {
    "argmax differs": lambda row: chosen(row["logits_cached"]) != chosen(row["logits_full"]),
    "|Δ| > 0.01": lambda row: deviation(row) > 0.01,
}
flipped = RULES["argmax differs"]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("length-profile")
    return small_run(folder, AXES, table="length-profile", mutants=MUTANTS, benign=("clean",))


@pytest.fixture(scope="module")
def tables(results):
    return summary(results)


@pytest.fixture(scope="module")
def cases(results):
    return [case for case in recorded(results) if case["mutant"] != "clean"]


def of(cases, mutant, row):
    """Return a mutant's cases with the model and, if the row names one, the length of a table's row."""
    names = [name for name in PROBE[:3] if name in row]
    return [c for c in cases if c["mutant"] == mutant and all(c[name] == row[name] for name in names)]


def flips(cases):
    """Return how many of the cases flip the argmax at some step."""
    return sum(any(map(flipped, case["rows"])) for case in cases)


def typical(cases):
    """Return the median over cases of their largest deviation."""
    return median(max(map(deviation, case["rows"])) for case in cases)


def test_flips_counts_the_seeds_whose_argmax_differs_at_some_step(tables, cases):
    assert list(tables["flips"]) == [*PROBE[:3], "seeds", *MUTANTS, "unseen"]
    rows = rows_of(tables["flips"])
    assert len(rows) == 12
    for row in rows:
        assert row["seeds"] == 3
        assert [row[name] for name in MUTANTS] == [flips(of(cases, name, row)) for name in MUTANTS]
    assert {row[name] for row in rows for name in MUTANTS} >= {0, 1, 3}


def test_a_mutant_that_flips_on_no_seed_is_listed_as_unseen_at_that_length(tables, cases):
    for row in rows_of(tables["flips"]):
        unseen = [name for name in MUTANTS if not flips(of(cases, name, row))]
        assert row["unseen"] == (", ".join(unseen) or "none")
    by_length = tables["flips"].groupby("prompt_length")["unseen"].agg(list)
    assert all("evict" in unseen for unseen in by_length[0])  # there is nothing to evict yet
    assert "none" in by_length[5]


def test_deviation_is_the_median_over_seeds_of_the_largest_deviation(tables, cases):
    assert list(tables["deviation"]) == [*PROBE[:3], *MUTANTS]
    rows = rows_of(tables["deviation"])
    assert len(rows) == 12
    for row in rows:
        assert [row[name] for name in MUTANTS] == [typical(of(cases, name, row)) for name in MUTANTS]
    assert {row["evict"] for row in rows if row["prompt_length"] == 0} == {0.0}


def test_first_flip_names_the_lengths_at_which_a_mutant_shows_and_does_not(tables, cases):
    table = tables["first-flip"].astype(object)
    rows = rows_of(table.where(table.notna(), None))
    assert [row["mutant"] for row in rows] == 4 * list(MUTANTS)
    for row in rows:
        seen = {n: flips(of(cases, row["mutant"], row | {"prompt_length": n})) for n in AXES["prompt_length"]}
        assert row["some seed first at"] == next((length for length, count in seen.items() if count), None)
        assert row["every seed first at"] == next((length for length, count in seen.items() if count == 3), None)
        assert row["no seed at"] == (", ".join(str(length) for length, count in seen.items() if not count) or "none")
    assert None in {row["every seed first at"] for row in rows}
    assert {row["some seed first at"] for row in rows} > {0, 2}


def test_first_flip_names_the_length_at_which_the_deviation_is_largest(tables, cases):
    for row in rows_of(tables["first-flip"]):
        size = {n: typical(of(cases, row["mutant"], row | {"prompt_length": n})) for n in AXES["prompt_length"]}
        assert (row["|Δ| at shortest"], row["|Δ| at longest"]) == (size[0], size[5])
        assert (row["largest |Δ|"], row["at length"]) == max((value, length) for length, value in size.items())


def sights(cases, weights, rule):
    """Return which (mutant, seed) each probe catches by a rule, on one kind of weights."""
    found = {}
    for case in (case for case in cases if case["weights"] == weights):
        for row in case["rows"]:
            probe = (weights, case["sharpness"], case["prompt_length"], row["step"])
            found.setdefault(probe, set()).update({(case["mutant"], case["seed"])} if RULES[rule](row) else ())
    return found


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("weights", AXES["weights"])
def test_the_probes_catch_what_they_claim_and_together_all_that_any_probe_catches(tables, cases, weights, rule):
    rows = [row for row in rows_of(tables["probes"]) if (row["weights"], row["rule"]) == (weights, rule)]
    found = sights(cases, weights, rule)
    caught = [found[tuple(row[name] for name in PROBE)] for row in rows]
    assert [row["catches"] for row in rows] == [len(targets) for targets in caught]
    assert set().union(*caught) == set().union(*found.values())
    assert {row["targets"] for row in rows} == {12}
    assert {row["caught by none"] for row in rows} == {12 - len(set().union(*found.values()))}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("weights", AXES["weights"])
def test_no_smaller_set_catches_as_much_and_none_as_small_is_shorter(tables, cases, weights, rule):
    rows = [row for row in rows_of(tables["probes"]) if (row["weights"], row["rule"]) == (weights, rule)]
    found = {}
    for (_, _, length, step), caught in sights(cases, weights, rule).items():  # of equal ones the shortest will do
        found[frozenset(caught)] = min(found.get(frozenset(caught), 99), length + step)
    everything, best = frozenset().union(*found), {frozenset(): 0}
    for _ in rows:
        assert everything not in best
        grown = {}
        for union, cost in best.items():
            for caught, more in found.items():
                grown[union | caught] = min(grown.get(union | caught, 999), cost + more)
        best = grown
    assert best[everything] == sum(row["prompt_length"] + row["step"] for row in rows)


def test_the_profile_has_the_spread_over_seeds_of_every_probe_and_mutant(tables, cases):
    rows = rows_of(tables["profile"])
    assert len(rows) == 4 * 4 * (5 + 6 + 6)  # models, mutants, steps: an empty prompt has no step 0
    for row in rows:
        seen = [each for c in of(cases, row["mutant"], row) for each in c["rows"] if each["step"] == row["step"]]
        sizes = [deviation(each) for each in seen]
        assert (row["seeds"], row["flips"]) == (3, sum(map(flipped, seen)))
        assert (row["min |Δ|"], row["median |Δ|"], row["max |Δ|"]) == (min(sizes), median(sizes), max(sizes))


def test_where_no_probe_catches_anything_none_is_named(tmp_path):
    axes = {"seed": [0, 1], "prompt_length": 0}
    found = summary(small_run(tmp_path, axes, table="length-profile", mutants=("evict",), benign=("clean",)))
    assert found["flips"]["unseen"].tolist() == ["all"]
    assert found["probes"]["caught by none"].tolist() == found["probes"]["targets"].tolist() == [2, 2]
    assert "prompt_length" not in found["probes"]


def test_structures_and_rows_of_a_batch_are_draws_and_views_of_the_same_probe(tmp_path):
    axes = {"seed": [0, 1], "depth": [1, 2], "batch": 2, "prompt_length": 4}
    found = summary(small_run(tmp_path, axes, table="length-profile", mutants=("tril",), benign=("clean",)))
    assert found["flips"]["seeds"].tolist() == [4]
    assert found["probes"]["targets"].tolist()[0] == 4
    assert set(found["profile"]["seeds"]) == {4}


def test_length_profile_draws_median_deviations_and_the_share_of_seeds_from_one_token_on():
    tables, axes = length_profile(), axes_of("length-profile")
    flips, sizes = (tables[name].query("prompt_length > 0") for name in ("flips", "deviation"))
    flips = flips.assign(**{name: 100 * flips[name] / 8 for name in DRAWN_MUTANTS})
    for column, sharpness in enumerate((1.0, 2.0)):
        for mutant, upper, lower in zip(DRAWN_MUTANTS, axes[column].lines, axes[column + 2].lines, strict=False):
            assert upper.get_label() == mutant
            columns = ["prompt_length", mutant]
            draws(upper, sizes, columns, sharpness=sharpness)
            draws(lower, flips, columns, sharpness=sharpness)
