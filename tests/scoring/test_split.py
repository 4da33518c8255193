import pytest

from mutkv.errors import UsageError
from mutkv.scoring import score_by, score_verdicts

from .frames import ASKED, benign, faulty, random_verdicts, verdicts_of

ROWS = verdicts_of(
    faulty("a", score=1.0, depth=1, mutant_class="position", origin="seed"),
    faulty("b", depth=2, mutant_class="mask", origin="reported"),
    faulty("c", depth=2, mutant_class="rope", origin="reported", path="both"),
    benign(depth=1, score=1.0),
    benign(depth=2),
    benign(depth=4),
)


def summary(scores):
    return {value: (s.positives, s.negatives, s.detectors[0].recall.value) for value, s in scores.items()}


@pytest.mark.parametrize(
    ("column", "values"), [("mutant", "ab"), ("mutant_class", ("position", "mask")), ("origin", ("seed", "reported"))]
)
def test_a_property_of_the_mutant_shares_the_benign_cases(column, values):
    assert summary(score_by(ROWS, column, **ASKED)) == {values[0]: (1, 3, 1.0), values[1]: (1, 3, 0.0)}


def test_a_property_of_the_configuration_divides_the_benign_cases():
    expected = {1: (1, 1, 1.0), 2: (1, 1, 0.0), 4: (0, 1, None)}
    assert summary(score_by(ROWS, "depth", **ASKED)) == expected


def test_a_value_is_scored_like_a_dataset_that_holds_nothing_else():
    frame = random_verdicts(2)
    alone = score_verdicts(frame[frame["depth"] == 2], **ASKED)
    assert score_by(frame, "depth", **ASKED)[2] == alone


def test_class_is_short_for_mutant_class():
    assert score_by(ROWS, "class", **ASKED) == score_by(ROWS, "mutant_class", **ASKED)


@pytest.mark.parametrize("column", ["equivalent", "kind", "reached", "first_changed_step"])
def test_what_describes_the_mutant_shares_the_benign_cases(column):
    frame = ROWS.drop(columns=column, errors="ignore").assign(**{column: ROWS["mutant"]})
    if column == "kind":
        frame["kind"] = ROWS["kind"]
    assert {score.negatives for score in score_by(frame, column, **ASKED).values()} == {3}


def test_values_are_sorted_and_cases_without_one_come_last_under_none():
    frame = ROWS.assign(window=[8.0, 2.0, 2.0, None, 8.0, 2.0])
    scores = score_by(frame, "window", **ASKED)
    assert list(scores) == [2.0, 8.0, None]
    assert summary(scores)[None] == (0, 1, None)


def test_values_are_plain_python_values():
    assert [type(value) for value in score_by(ROWS, "depth", **ASKED)] == [int, int, int]


def test_label_and_seed_reach_every_value():
    for score in score_by(ROWS, "depth", **ASKED, label="observable", seed=5).values():
        assert (score.label, score.seed, score.positives) == ("observable", 5, 0)


@pytest.mark.parametrize("column", ["depht", "flag", "detector"])
def test_a_column_that_is_not_one_of_cases_is_refused(column):
    with pytest.raises(UsageError, match=f"unknown column '{column}'"):
        score_by(ROWS, column, **ASKED)


def test_a_refused_column_suggests_the_nearest_one():
    with pytest.raises(UsageError, match="did you mean depth"):
        score_by(ROWS, "depht", **ASKED)
