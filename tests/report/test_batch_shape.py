"""The tables of batch shapes: against plain Python on the Parquet rows, by hand, and against ``mutkv.score``."""

from statistics import median
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import mutkv
from mutkv.configuration import CONFIGURATION_COLUMNS
from mutkv.detectors import default_detectors, shipped_detectors
from mutkv.detectors.judge import judge, judgeable
from mutkv.grid.results import load
from mutkv.report.summary import summary
from mutkv.report.tables.batch_shape import alone_deviation

from .datasets import chosen, deviation, recorded
from .test_figures import FORMATS, axes_of, batch_shape, draws, ends, panels
from .test_rounding import rows_of, small_run

AXES = {
    "seed": [0, 1],
    "depth": 2,
    "heads": 4,
    "head_dim": 16,
    "vocab": 32,
    "steps": 6,
    "batch": [1, 3, 8],
    "storage": ["float64", "float32", "bfloat16"],
    "prefill_order": "native",
}
MUTANTS = ("tril", "stale")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("batch-shape")
    return small_run(folder, AXES, table="batch-shape", mutants=MUTANTS)


@pytest.fixture(scope="module")
def tables(results):
    return summary(results, verdicts=judge(results, shipped_detectors()).frame)


@pytest.fixture(scope="module")
def clean(results):
    """Return the clean cases by storage and batch."""
    groups = {}
    for case in recorded(results):
        if case["mutant"] == "clean":
            groups.setdefault((case["storage"], case["batch"]), []).append(case)
    return groups


def requests(cases):
    """Return the observations of each request: a row of a case."""
    return [[each for each in c["rows"] if each["row"] == row] for c in cases for row in range(c["batch"])]


def test_deviation_is_over_every_observation_of_the_clean_engine(tables, clean):
    rows = rows_of(tables["deviation"])
    assert {(row["storage"], row["batch"]) for row in rows} == clean.keys()
    assert len(rows) == 9
    for row in rows:
        sizes = [deviation(each) for case in clean[row["storage"], row["batch"]] for each in case["rows"]]
        assert len(sizes) == 2 * row["batch"] * 7
        assert row["median|Δ|"] == median(sizes)
        assert row["max|Δ|"] == max(sizes)
    assert tables["deviation"]["max|Δ|"].max() > 0  # native kernels round; how much depends on the machine


def test_requests_are_rows_and_count_once_however_many_steps_flip_or_exceed_the_tolerance(tables, clean):
    for row in rows_of(tables["deviation"]):
        alone = requests(clean[row["storage"], row["batch"]])
        flips = [any(chosen(e["logits_cached"]) != chosen(e["logits_full"]) for e in each) for each in alone]
        over = [any(deviation(e) > 1e-6 for e in each) for each in alone]
        assert row["requests"] == 2 * row["batch"] == len(alone)
        assert row["requests with a flip"] == sum(flips)
        assert row["requests over 1e-6 %"] == pytest.approx(100 * sum(over) / len(over))
    assert {row["requests over 1e-6 %"] for row in rows_of(tables["deviation"])} > {0}


def test_a_request_deviates_from_itself_alone_while_both_were_fed_the_same_tokens(tables, clean):
    column = tables["deviation"].set_index(["storage", "batch"])["max|Δ| batch to alone"]
    for (storage, batch), cases in clean.items():
        alone = {case["seed"]: requests([case])[0] for case in clean[storage, 1]}
        found = []
        for case in cases:
            for mine, other in zip(requests([case])[0], alone[case["seed"]], strict=True):
                if mine["forced_token"] != other["forced_token"]:
                    break
                pairs = zip(mine["logits_cached"], other["logits_cached"], strict=True)
                found.append(max(abs(a - b) for a, b in pairs))
        assert column[storage, batch] == max(found)


def test_alone_a_request_deviates_from_itself_alone_by_nothing(tables):
    alone = tables["deviation"].query("batch == 1")
    assert alone["max|Δ| batch to alone"].tolist() == [0.0, 0.0, 0.0]


def hand_made(*cases):
    """Return what stands for results: clean cases, each as (seed, batch, rows) with rows (row, step, token, logits)."""
    stored = [pd.DataFrame(rows, columns=["row", "step", "forced_token", "logits_cached"]) for _, _, rows in cases]
    firsts = np.cumsum([0, *map(len, stored)])
    frame = pd.DataFrame(
        [
            {"storage": "float32", "seed": seed, "batch": batch, "part": "p", "first": first, "observations": len(rows)}
            for (seed, batch, rows), first in zip(cases, firsts, strict=False)
        ]
    ).assign(mutant="clean", outcome="ok")
    frame = frame.assign(**{name: 0 for name in CONFIGURATION_COLUMNS if name not in frame})
    columns = pd.concat(stored)
    as_arrays = {name: np.array(columns[name].tolist()) for name in columns}
    return SimpleNamespace(cases=frame, columns=lambda part, names: {name: as_arrays[name] for name in names})


def test_after_the_fed_tokens_part_two_texts_are_not_compared_any_more():
    alone = [(0, step, token, [0.0, 0.0]) for step, token in enumerate([5, 6, 7, 8])]
    parts = [(0, 0, 5, [0.0, 1.0]), (0, 1, 6, [2.0, 0.0]), (0, 2, 9, [50.0, 0.0]), (0, 3, 8, [90.0, 0.0])]
    keeps = [(0, step, token, [0.0, 0.25]) for step, token in enumerate([5, 6, 7, 8])]
    other = [(1, step, token, [70.0, 0.0]) for step, token in enumerate([5, 6, 7, 8])]
    found = alone_deviation(hand_made((0, 1, alone), (1, 1, alone), (0, 2, parts + other), (1, 2, keeps + other)))
    assert found.to_dict() == {("float32", 1): 0.0, ("float32", 2): 2.0}
    found = alone_deviation(hand_made((0, 1, alone), (1, 1, alone), (1, 2, keeps + other)))
    assert found["float32", 2] == 0.25


def part_of(results, **wanted):
    """Return the same dataset with the cases of these values alone."""
    part = load(results.folder)
    keep = (part.cases[list(wanted)] == pd.Series(wanted)).all(axis=1)
    vars(part)["cases"] = part.cases[keep].reset_index(drop=True)
    return part


@pytest.mark.parametrize("storage", AXES["storage"])
def test_the_detectors_are_mutkv_scores_figures_of_each_format_and_batch(results, tables, storage):
    rows = tables["detectors"].query("storage == @storage").set_index("detector")
    rates = tables["rates"].query("storage == @storage").set_index(["detector", "batch"])
    assert len(rates) == len(rows) * len(AXES["batch"]) == 30
    for detector in mutkv.score(part_of(results, storage=storage), shipped_detectors()).detectors:
        row, recall = rows.loc[detector.name], detector.recall
        assert (row["threshold"], row["recall"], row["low"], row["high"]) == (
            detector.threshold,
            recall.value,
            recall.low,
            recall.high,
        )
    for batch in AXES["batch"]:
        score = mutkv.score(part_of(results, storage=storage, batch=batch), shipped_detectors())
        for detector in score.detectors:
            rate, row = detector.fpr["clean-native"], rates.loc[detector.name, batch]
            assert (row["FPR"], row["low"], row["high"]) == (rate.value, rate.low, rate.high)
            assert rows.loc[detector.name, f"FPR, batch of {batch}"] == rate.value
    assert rates["clean cases"].unique().tolist() == [2]


def test_the_control_is_no_false_alarm_of_a_batch_shape(tables):
    """Clopper and Pearson's interval of 0 of n names n: 2 clean cases per format and batch, not 4 benign ones."""
    quiet = tables["rates"].query("FPR == 0")
    assert len(quiet)
    assert quiet["high"].tolist() == pytest.approx([1 - 0.025 ** (1 / 2)] * len(quiet))


def test_data_of_another_engine_is_judged_by_the_detectors_that_do_not_run_it_again(results):
    other = load(results.folder)
    other.plan["engine_digest"] = "another"
    assert judgeable(other, shipped_detectors()) == list(default_detectors())
    assert judgeable(results, shipped_detectors()) == list(shipped_detectors())


def test_without_verdicts_there_is_no_table_of_detectors(results):
    assert list(summary(results)) == ["deviation"]


def test_requests_of_two_structures_are_requests_of_their_own(tmp_path):
    axes = {"depth": [1, 2], "batch": [1, 2], "seed": [0, 1], "prefill_order": "native", "storage": "float32"}
    rows = summary(small_run(tmp_path, axes, table="batch-shape", benign=("clean",)))["deviation"]
    assert rows["requests"].tolist() == [4, 8]
    assert rows["max|Δ| batch to alone"].max() < 1e-5


def test_batch_shape_draws_deviations_by_batch_and_every_rate_that_is_known_with_its_interval():
    tables, axes = batch_shape(), axes_of("batch-shape")
    for storage, line, panel in zip(FORMATS, axes[0].lines, axes[1:], strict=False):
        draws(line, tables["deviation"], ["batch", "max|Δ|"], storage=storage)
        detectors, rates = (rows[rows["storage"] == storage] for rows in (tables["detectors"], tables["rates"]))
        shown = [(detectors, "recall"), (rates.query("batch == 1"), "FPR"), (rates.query("batch == 16"), "FPR")]
        for (rows, name), bars in zip(shown, panel.containers, strict=True):
            known = rows.dropna(subset=name)
            np.testing.assert_allclose(bars.lines[0].get_xdata().astype(float), known[name].astype(float))
            np.testing.assert_allclose(ends(bars), known[["low", "high"]].astype(float))


@pytest.mark.parametrize("name", ["detectors", "rates"])
def test_a_rate_without_an_interval_is_drawn_without_one(name):
    tables = batch_shape()
    tables[name] = tables[name].assign(low=None, high=None)
    assert len(panels("batch-shape", tables)[1].containers) == 3
