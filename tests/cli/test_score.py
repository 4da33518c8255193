"""`mutkv score --json`: exactly the documented keys, with values that are worked out here from the Parquet rows."""

import math

import pyarrow.parquet as pq
import pytest

from .command import MUTANTS, parts

Z = 1.959963984540054
TOP = {
    "scenario",
    "label",
    "completeness",
    "positives",
    "negatives",
    "harmless",
    "unscored_mutants",
    "seed",
    "detectors",
}
INTERVAL = {"value", "low", "high"}
DETECTOR = {
    "name",
    "threshold",
    "recall",
    "recall_cases",
    "fpr",
    "auc",
    "auc_source",
    "partial_auc",
    "flagged",
    "crashed",
    "cost_tokens",
}


@pytest.fixture(scope="module")
def cases(template):
    """Every case by hand: its mutant, whether its output changed, and its max|Δ| at each step."""
    found = {}
    for path in parts(template / "results/tiny"):
        rows = pq.read_table(path.parents[1] / "observations" / path.name, partitioning=None).to_pylist()
        for case in pq.read_table(path, partitioning=None).to_pylist():
            mine = [row for row in rows if row["case_id"] == case["case_id"]]
            found[case["configuration_id"], case["mutant"]] = mine
    clean = {key: [row["argmax_cached"] for row in rows] for (key, name), rows in found.items() if name == "clean"}
    return [
        {
            "mutant": name,
            "changed": [row["argmax_cached"] for row in rows] != clean[key],
            "deviations": [
                max(abs(a - b) for a, b in zip(row["logits_cached"], row["logits_full"], strict=True)) for row in rows
            ],
        }
        for (key, name), rows in found.items()
    ]


def split(cases):
    """Return positives, harmless and benign cases."""
    faulty = [case for case in cases if case["mutant"] in MUTANTS]
    positive = [case for case in faulty if case["changed"]]
    return positive, [case for case in faulty if not case["changed"]], [case for case in cases if case not in faulty]


def wilson(hits, total):
    share, spread = hits / total, Z * math.sqrt(hits / total * (1 - hits / total) / total + Z**2 / (4 * total**2))
    center, scale = share + Z**2 / (2 * total), 1 + Z**2 / total
    return {"value": share, "low": (center - spread) / scale, "high": (center + spread) / scale}


def all_or_none(hits, total):
    """Clopper and Pearson's interval where it has a closed form."""
    bound = 0.025 ** (1 / total)
    return {"value": 1.0, "low": bound, "high": 1.0} if hits else {"value": 0.0, "low": 0.0, "high": 1 - bound}


def pairs_won(positive, negative):
    """The share of pairs that the score orders rightly, ties one half."""
    won = [1.0 if a > b else 0.5 if a == b else 0.0 for a in positive for b in negative]
    return sum(won) / len(won)


@pytest.mark.parametrize(
    ("name", "steps", "cost"), [("one-step", slice(1, 2), 3 + 1), ("every-step", slice(None), 3 + 3)]
)
def test_every_figure_is_what_the_rows_give_by_hand(name, steps, cost, cases, here, mutkv):
    document = mutkv(f"score --json --detector {name}").json
    positive, harmless, benign = split(cases)
    score = {id(case): max(case["deviations"][steps]) for case in cases}
    flagged = {id(case) for case in cases if score[id(case)] > 0}
    assert (len(positive), len(harmless), len(benign)) == (6, 6, 8)
    assert {key: document[key] for key in ("positives", "harmless", "negatives")} == {
        "positives": 6,
        "harmless": 6,
        "negatives": 8,
    }

    [detector] = document["detectors"]
    by_mutant = {mutant: [id(case) in flagged for case in positive if case["mutant"] == mutant] for mutant in MUTANTS}
    shares = [sum(flags) / len(flags) for flags in by_mutant.values()]
    assert shares == ([0, 1, 1] if name == "one-step" else [1, 1, 1])
    assert detector["recall"]["value"] == pytest.approx(sum(shares) / 3)
    # Of three mutants drawn, all are the missed one in 1/27 > 2.5 % of draws, and none of them is in 8/27.
    assert (detector["recall"]["low"], detector["recall"]["high"]) == (min(shares), max(shares))
    hits = sum(id(case) in flagged for case in positive)
    assert detector["recall_cases"] == pytest.approx(wilson(hits, len(positive)))
    for kind in ("clean", "control"):
        flags = [id(case) in flagged for case in benign if case["mutant"] == kind]
        assert detector["fpr"][kind] == pytest.approx(all_or_none(sum(flags), len(flags)))
    assert set(detector["fpr"]) == {"clean", "control"}
    of = {
        group: [score[id(case)] for case in rows]
        for group, rows in zip("PHB", (positive, harmless, benign), strict=True)
    }
    assert detector["auc"]["value"] == pytest.approx(pairs_won(of["P"], of["B"]))
    assert detector["auc_source"]["value"] == pytest.approx(pairs_won(of["P"], of["B"] + of["H"]))
    # Up to the first false alarm the ROC curve is flat: McClish's form of the area below 1 % of false alarms.
    before = sum(value > max(of["B"]) for value in of["P"]) / len(of["P"])
    least, most = 0.01**2 / 2, 0.01
    assert detector["partial_auc"] == pytest.approx((1 + (before * 0.01 - least) / (most - least)) / 2)
    assert detector["flagged"] == len(flagged)
    assert (detector["crashed"], detector["threshold"], detector["cost_tokens"]) == (0, 0.0, cost)


def test_the_json_has_exactly_the_documented_keys(here, mutkv):
    document = mutkv("score --json").json
    assert set(document) == TOP
    assert document["scenario"] == "tiny"
    assert document["label"] == "output-changed"
    assert document["completeness"] == {"planned": 20, "done": 20, "failed": 0, "missing": 0}
    assert (document["unscored_mutants"], document["seed"]) == ([], 0)
    names = "prefill one-step every-step last-step argmax-one-step argmax-every-step allclose text-8 logprob-8"
    assert [detector["name"] for detector in document["detectors"]] == names.split()
    for detector in document["detectors"]:
        assert set(detector) == DETECTOR
        for key in ("recall", "recall_cases", "auc", "auc_source"):
            assert set(detector[key]) == INTERVAL
        assert {kind: set(rate) for kind, rate in detector["fpr"].items()} == {"clean": INTERVAL, "control": INTERVAL}


def test_the_label_observable_makes_every_faulty_case_of_this_dataset_a_positive(here, mutkv):
    document = mutkv("score --json --label observable --detector text-8").json
    assert (document["label"], document["positives"], document["harmless"]) == ("observable", 12, 0)
    assert document["detectors"][0]["recall_cases"]["value"] == 6 / 12


def test_by_a_property_of_the_mutant_every_value_faces_all_benign_cases(here, mutkv, cases):
    document = mutkv("score --json --by mutant --detector one-step").json
    assert list(document["by"]) == ["mutant"]
    parts_of = document["by"]["mutant"]
    assert set(parts_of) == set(MUTANTS)
    for name, part in parts_of.items():
        assert set(part) == TOP
        assert part["negatives"] == 8
        assert part["positives"] == sum(case["changed"] for case in cases if case["mutant"] == name)
        assert part["detectors"][0]["recall"]["value"] == (name != "posfrozen")


def test_by_a_column_of_the_configuration_the_benign_cases_are_divided(here, mutkv):
    parts_of = mutkv("score --json --by depth --detector every-step").json["by"]["depth"]
    assert list(parts_of) == ["1", "2"]
    assert [part["negatives"] for part in parts_of.values()] == [4, 4]
    assert sum(part["positives"] for part in parts_of.values()) == 6


def test_another_seed_is_reported_and_moves_no_estimate(here, mutkv):
    one, other = (mutkv(f"score --json --detector one-step --seed {seed}").json for seed in (0, 7))
    assert (one["seed"], other["seed"]) == (0, 7)
    for key in ("recall", "recall_cases", "auc", "auc_source"):
        assert one["detectors"][0][key]["value"] == other["detectors"][0][key]["value"]
