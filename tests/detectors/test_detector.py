"""The decorator: what it takes, what it fills in, and what it refuses where it is written."""

import dataclasses

import pytest

from mutkv.detectors import Detector, detector
from mutkv.errors import UsageError


def check_it(case):
    """First line.

    Second paragraph.
    """
    return case


def test_a_bare_decorator_means_logits_and_threshold_zero():
    made = detector(check_it)
    assert made == Detector("check-it", check_it, "logits", 0.0, False, None, "First line.")


def test_keywords_are_kept():
    def price(configuration):
        return 3

    made = detector(needs="text", threshold=0.5, name="mine", batched=True, cost=price)(check_it)
    assert made == Detector("mine", check_it, "text", 0.5, True, price, "First line.")


def test_a_detector_is_still_the_function_to_call():
    assert detector(check_it)("case") == "case"
    assert detector(needs="live")(check_it)("engine") == "engine"


def test_a_detector_cannot_be_changed_and_can_be_a_key():
    made = detector(check_it)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.threshold = 1.0
    assert {made: 1}[detector(check_it)] == 1


def test_a_function_without_a_docstring_has_an_empty_summary():
    assert detector(name="short")(lambda case: 0.0).summary == ""


@pytest.mark.parametrize("needs", ["text", "logprobs", "logits"])
def test_a_dataset_is_enough_for_offline_needs(needs):
    assert detector(needs=needs)(check_it).offline


@pytest.mark.parametrize("needs", ["kv", "hidden", "live"])
def test_other_needs_run_the_case_again_one_by_one(needs):
    assert not detector(needs=needs)(check_it).offline
    with pytest.raises(UsageError, match=f"'check-it': needs='{needs}' is called case by case: drop batched=True"):
        detector(needs=needs, batched=True)(check_it)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"needs": "logit"}, "detector 'check-it': unknown needs 'logit': did you mean logits"),
        ({"threshold": -1.0}, "detector 'check-it': threshold -1.0: use a finite number >= 0"),
        ({"threshold": float("nan")}, "detector 'check-it': threshold nan: use a finite number >= 0"),
        ({"threshold": "1"}, "detector 'check-it': threshold 1: use a finite number >= 0"),
        ({"name": "Not kebab"}, "detector 'Not kebab': not a kebab-case name: give it one, as in name='my-check'"),
    ],
)
def test_what_could_not_be_judged_is_refused_in_one_line(keywords, message):
    with pytest.raises(UsageError) as caught:
        detector(**keywords)(check_it)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
