"""A mutant in place: the code is replaced while the block runs, and the clean code is back afterwards."""

import traceback
from types import CodeType

import pytest
from tinyhouse.engine import cache as tiny
from tinyhouse.engine.session import Session

from mutkv.errors import UsageError
from mutkv.mutation.swap import swap

from .conftest import ENGINE, MakeMutant

PACKAGE = "tinyhouse.engine"


class FailureError(Exception):
    pass


def length_after_cut() -> int:
    cache = tiny.Cache([1, 2, 3])
    cache.length = 2
    return len(cache.rows)


def fail_with_other_code_than(code: CodeType) -> None:
    assert tiny.Cache.append.__code__ is not code
    raise FailureError


PLACES = {
    "method": ("self.rows.append(row)", "self.rows.insert(0, row)", lambda c: (c.append(9), c.rows[0])[1], 4, 9),
    "property": ("return len(self.rows)", "return 7", lambda c: c.length, 2, 7),
    "setter": ("del self.rows[length:]", "pass", lambda c: length_after_cut(), 2, 3),
    "static method": ("return row * 10", "return row", lambda c: c.scaled(3), 30, 3),
    "class method": ("return cls(list(range(count)))", "return cls([])", lambda c: len(c.filled(3).rows), 3, 0),
    "wrapped": ("return self.rows[0]", "return self.rows[1]", lambda c: c.first(), 8, 10),
    "private": ("return 41", "return 42", lambda c: c.reveal(), 41, 42),
    "default kept": ('return f"{prefix}: {self.length}"', "return prefix", lambda c: c.describe(), "rows: 2", "rows"),
    "inner function": ("return row + offset", "return row - offset", lambda c: c.shifted(1), [5, 6], [3, 4]),
    "cached": ("return number * number", "return 0", lambda c: tiny.squared.__wrapped__(3), 9, 0),
}


@pytest.mark.parametrize("place", PLACES)
def test_the_line_is_swapped_in_and_out_wherever_it_stands(mutant: MakeMutant, place: str) -> None:
    line, becomes, use, clean, mutated = PLACES[place]
    assert use(tiny.Cache([4, 5])) == clean
    with swap(mutant("cache.py", line, becomes), PACKAGE) as reach:
        assert not reach.reached
        assert use(tiny.Cache([4, 5])) == mutated
        assert reach.reached
        reach.reset_reached()
        assert not reach.reached
    assert use(tiny.Cache([4, 5])) == clean


def test_objects_and_bound_methods_from_before_run_the_mutated_line(mutant: MakeMutant) -> None:
    extend = Session().extend
    extend(5)
    with swap(mutant("session.py", "return start * STEP", "return -1"), PACKAGE):
        assert extend(5) == -1
    assert extend(5) == 2


def test_the_clean_code_is_back_after_an_error_inside(mutant: MakeMutant) -> None:
    code, names = tiny.Cache.append.__code__, set(vars(tiny))
    with pytest.raises(FailureError), swap(mutant("cache.py", "self.rows.append(row)", "pass"), PACKAGE):
        fail_with_other_code_than(code)
    assert tiny.Cache.append.__code__ is code
    assert set(vars(tiny)) == names


def test_the_clean_code_is_back_after_the_mutated_line_raises(mutant: MakeMutant) -> None:
    becomes = "raise ValueError(row)"
    with (
        pytest.raises(ValueError, match="5") as caught,
        swap(mutant("cache.py", "self.rows.append(row)", becomes), PACKAGE),
    ):
        Session().extend(5)
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert frame.line == becomes
    assert (ENGINE / "cache.py").read_text().splitlines()[frame.lineno - 1].strip() == "self.rows.append(row)"
    assert Session().extend(5) == 0


@pytest.mark.parametrize(
    ("line", "becomes", "message"),
    [
        ("LIMIT = 100", "LIMIT = 200", "is outside every function: swap replaces a function's body"),
        ("@lru_cache", "@doubled", "changes the signature of squared"),
        (
            'def describe(self, prefix: str = "rows") -> str:',
            'def describe(self, prefix="r"):',
            "signature of Cache.describe",
        ),
        ("return self.rows[-1]", "return self.rows[0]", "Cache.last cannot be found at run time"),
        (
            "return len(self.rows)",
            "return len(super().__repr__())",
            "free variables of Cache.length change from none to __class__",
        ),
        ("return 42", "return 43", "line 'return 42' not found"),
    ],
)
def test_what_a_swap_cannot_do_is_refused_and_nothing_changes(
    mutant: MakeMutant, line: str, becomes: str, message: str
) -> None:
    names, codes = (
        dict(vars(tiny)),
        {name: f.__code__ for name, f in vars(tiny.Cache).items() if hasattr(f, "__code__")},
    )
    with pytest.raises(UsageError) as caught, swap(mutant("cache.py", line, becomes), PACKAGE):
        pytest.fail("the block must not run")
    assert str(caught.value).startswith("<memory>: cache.py: ")
    assert message in str(caught.value)
    assert dict(vars(tiny)) == names
    assert {name: f.__code__ for name, f in vars(tiny.Cache).items() if hasattr(f, "__code__")} == codes


def test_a_second_swap_in_the_same_module_is_refused(mutant: MakeMutant) -> None:
    first, second = mutant("cache.py", "return 41", "return 42"), mutant("cache.py", "return row * 10", "return 0")
    with swap(first, PACKAGE), pytest.raises(UsageError, match="already holds a mutant"), swap(second, PACKAGE):
        pytest.fail("the block must not run")
    assert (tiny.Cache().reveal(), tiny.Cache.scaled(3)) == (41, 30)
