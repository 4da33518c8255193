import signal
import threading
import time

import pytest

from mutkv.grid.limits import CaseTimeout, time_limit


def spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_a_loop_is_ended_at_its_limit():
    began = time.monotonic()
    with pytest.raises(CaseTimeout, match=r"within 0\.05 s"), time_limit(0.05):
        spin(1)
    assert time.monotonic() - began < 0.5


def test_a_broad_except_does_not_swallow_the_timeout():
    def careless() -> None:
        try:
            spin(1)
        except Exception:
            spin(1)

    with pytest.raises(CaseTimeout), time_limit(0.05):
        careless()


def test_no_limit_never_sets_an_alarm():
    with time_limit(None):
        before = signal.getitimer(signal.ITIMER_REAL)[0]
        assert before == 0 or before > 10  # pytest-timeout's own


def test_no_time_left_is_a_timeout_and_not_no_limit():
    with pytest.raises(CaseTimeout), time_limit(0):
        spin(1)


def test_other_threads_run_without_a_limit():
    seen: list[object] = []

    def work() -> None:
        with time_limit(0.01):
            time.sleep(0.05)
            seen.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == ["done"]


@pytest.fixture
def rings():
    """The alarms that a handler of somebody else got."""
    heard: list[int] = []
    handler = signal.signal(signal.SIGALRM, lambda number, _: heard.append(number))
    delay, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    yield heard
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, delay)


def test_a_body_in_time_leaves_no_alarm_behind(rings):
    with time_limit(0.05):
        pass
    spin(0.1)
    assert rings == []


@pytest.mark.parametrize("seconds", [0.01, 5])
def test_the_previous_handler_is_back_after_the_body(rings, seconds):
    before = signal.getsignal(signal.SIGALRM)
    try:
        with time_limit(seconds):
            spin(0.03)
    except CaseTimeout:
        pass
    assert signal.getsignal(signal.SIGALRM) is before


def test_a_later_alarm_set_before_goes_on_with_the_time_it_had_left(rings):
    signal.setitimer(signal.ITIMER_REAL, 10)
    with pytest.raises(CaseTimeout), time_limit(0.05):
        spin(1)
    assert 5 < signal.getitimer(signal.ITIMER_REAL)[0] <= 9.95


def test_an_alarm_that_came_due_during_the_body_rings_right_after_it(rings):
    def slow_to_end() -> None:
        try:
            spin(1)
        finally:
            spin(0.1)

    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with pytest.raises(CaseTimeout), time_limit(0.05):
        slow_to_end()
    spin(0.02)
    assert len(rings) == 1


def test_the_sooner_of_two_nested_limits_ends_both():
    began = time.monotonic()
    with pytest.raises(CaseTimeout, match=r"within 0\.05 s"), time_limit(0.05), time_limit(1):
        spin(2)
    assert time.monotonic() - began < 0.5


def test_an_inner_limit_leaves_the_outer_one_running():
    def inner_then_more() -> None:
        with pytest.raises(CaseTimeout, match=r"within 0\.05 s"), time_limit(0.05):
            spin(1)
        spin(1)

    with pytest.raises(CaseTimeout, match=r"within 0\.2 s"), time_limit(0.2):
        inner_then_more()
