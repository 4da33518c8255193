"""The tables of training over a prefix: against plain Python on measurements made by hand; and its figure."""

from statistics import mean

import pytest

from mutkv.report.summary import chosen, summary

from .test_figures import axes_of, draws, training_prefix
from .test_rounding import rows_of
from .test_studies import by_hand

WAYS = ("through", "constant", "frozen", "frozen, prefix recomputed", "untrained")


def trained():
    """Return what training measured with two prefixes on two seeds: a value of its own for each figure."""
    parts = [("gradient cosine", part) for part in ("all", "embedding", "layers.0.up")]
    parts += [(f"suffix loss, {way}", "all") for way in WAYS]
    parts += [(f"held-out loss, {way}", f"step {step}") for way in WAYS[:2] for step in (50, 100, 1000)]
    return [
        {
            "prompt_length": n,
            "steps": 12 - n,
            "seed": seed,
            "quantity": quantity,
            "part": part,
            "value": number / 8 + seed,
        }
        for prefix, n in enumerate((2, 10))
        for seed in (6, 7)
        for number, (quantity, part) in enumerate(parts, start=20 * prefix + 3 * seed)
    ]


def over_seeds(prefix, quantity, part="all"):
    """Return mean, least and largest value of what was measured with a prefix."""
    wanted = {"prompt_length": prefix, "quantity": quantity, "part": part}
    values = [row["value"] for row in trained() if all(row[name] == value for name, value in wanted.items())]
    assert len(values) == 2
    return {"mean": mean(values), "min": min(values), "max": max(values)}


def case_of(prefix):
    return {"mutant": "clean", "prompt_length": prefix, "steps": 12 - prefix}


@pytest.fixture(scope="module")
def training():
    return summary(by_hand("training-prefix", trained()))


def test_training_has_the_cosine_over_all_parameters_and_the_mean_loss_of_each_way(training):
    rows = rows_of(training["training"])
    assert [(row["prompt_length"], row["steps"], row["seeds"]) for row in rows] == [(2, 10, 2), (10, 2, 2)]
    for row in rows:
        cosine = over_seeds(row["prompt_length"], "gradient cosine")
        assert {name: row[f"cosine {name}"] for name in cosine} == cosine
        names = {f"loss {way}": way for way in WAYS[:3]} | {"loss untrained": "untrained"}
        for name, way in names.items():
            assert row[name] == over_seeds(row["prompt_length"], f"suffix loss, {way}")["mean"]


def test_losses_curves_and_cosines_have_mean_and_range_over_seeds_of_each_way_step_and_tensor(training):
    expected = {
        "losses": [("way", way, f"suffix loss, {way}", "all") for way in WAYS],
        "cosines": [("tensor", name, "gradient cosine", name) for name in ("embedding", "layers.0.up")],
    }
    for table, figures in expected.items():
        assert rows_of(training[table]) == [
            {**case_of(prefix), key: name, "seeds": 2, **over_seeds(prefix, quantity, part)}
            for prefix in (2, 10)
            for key, name, quantity, part in figures
        ]
    assert rows_of(training["curves"]) == [
        {
            **case_of(n),
            "way": way,
            "training step": step,
            "seeds": 2,
            **over_seeds(n, f"held-out loss, {way}", f"step {step}"),
        }
        for n in (2, 10)
        for way in WAYS[:2]
        for step in (50, 100, 1000)
    ]


def test_curves_and_cosines_are_data(training):
    assert list(chosen(by_hand("training-prefix", trained()), training, None)) == ["training", "losses"]


def test_training_prefix_draws_the_means_of_cosine_losses_and_curves():
    tables, (cosine, losses, curves) = training_prefix(), axes_of("training-prefix")
    draws(cosine.lines[0], tables["training"], ["prompt_length", "cosine mean"])
    for way, line in zip(("through", "constant", "frozen"), losses.lines, strict=False):
        assert line.get_label() == way
        draws(line, tables["losses"], ["prompt_length", "mean"], way=way)
    for way, line in zip(("through", "constant"), curves.lines[:2], strict=True):
        draws(line, tables["curves"], ["training step", "mean"], way=way, prompt_length=6)


def test_a_mutant_and_another_suffix_are_rows_of_their_own():
    others = [row | {"mutant": "a", "value": 9.0} for row in trained()]
    others += [row | {"steps": 99, "value": 8.0} for row in trained()]
    tables = summary(by_hand("training-prefix", trained() + others, mutants=("a",)))
    alone = summary(by_hand("training-prefix", trained()))
    for name, table in tables.items():
        assert rows_of(table.query("mutant == 'clean' and steps < 99")) == rows_of(alone[name])
        assert len(table) == 3 * len(alone[name])
