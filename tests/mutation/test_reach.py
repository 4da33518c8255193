"""The flag against the interpreter's own trace of executed lines."""

import ast
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from mutkv.mutation.reach import FLAG, Reach, instrument

SOURCE = '''"""Every kind of statement, with paths that some inputs take and some do not."""
from __future__ import annotations

import contextlib

SCALE = 3


def run(x):
    """Docstring."""
    total = 0
    if x < 0:
        total -= 1
    elif x == 0:
        total -= 2
    else:
        total -= 3
    for i in range(x):
        total += i
        if i > 1: break
    else:
        total += 100
    while total > 90:
        total -= 50
    try:
        total += 10 // x
    except ZeroDivisionError:
        total = -7
    else:
        total += 1
    finally:
        total += 2
    with contextlib.suppress(ValueError):
        values = [total,
            int("x" if x > 3 else "1"),
        ]
        total += len(values)
    match x:
        case 1:
            total += 5
        case _:
            total += 6

    def inner(y):
        return y + total

    class Local:
        def method(self):
            return 1

    if x > 2:
        total += inner(1); total += Local().method()
    return total
'''

LINES = SOURCE.split("\n")
INPUTS = (-1, 0, 1, 2, 4)


def line_of(text: str) -> int:
    (number,) = (number for number, line in enumerate(LINES, 1) if line.strip() == text)
    return number


def loaded(line: int | None) -> tuple[dict[str, Any], Reach]:
    reach = Reach()
    namespace: dict[str, Any] = {FLAG: reach.flag, "__name__": "sample"}
    tree = ast.parse(SOURCE)
    exec(compile(tree if line is None else instrument(tree, line), "sample", "exec", dont_inherit=True), namespace)
    return namespace, reach


def traced(function: Callable[[int], int], x: int) -> set[int]:
    """The lines that the interpreter reports while the function runs."""
    lines: set[int] = set()

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line" and frame.f_code.co_filename == "sample":
            lines.add(frame.f_lineno)
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        function(x)
    finally:
        sys.settrace(previous)
    return lines


OPENERS = {"else:", "except ZeroDivisionError:", "finally:", "case 1:", "case _:"}
STATEMENTS = [
    node.lineno
    for node in ast.walk(ast.parse(SOURCE).body[-1])
    if isinstance(node, ast.stmt)
    and not isinstance(node, ast.FunctionDef)
    and not ast.get_source_segment(SOURCE, node).startswith('"""')
]


@pytest.mark.parametrize("line", sorted(set(STATEMENTS)))
@pytest.mark.parametrize("x", INPUTS)
def test_a_statement_is_reached_exactly_when_the_interpreter_runs_its_line(line: int, x: int) -> None:
    truth = traced(loaded(None)[0]["run"], x)
    namespace, reach = loaded(line)
    assert not reach.reached
    namespace["run"](x)
    assert reach.reached == (line in truth)


@pytest.mark.parametrize("line", [number for number, text in enumerate(LINES, 1) if text.strip() in OPENERS])
@pytest.mark.parametrize("x", INPUTS)
def test_a_line_that_opens_a_branch_is_reached_exactly_when_the_branch_runs(line: int, x: int) -> None:
    truth = traced(loaded(None)[0]["run"], x)
    namespace, reach = loaded(line)
    namespace["run"](x)
    assert reach.reached == (line + 1 in truth)


@pytest.mark.parametrize("line", range(1, len(LINES)))
def test_the_flag_changes_neither_results_nor_docstrings_nor_line_numbers(line: int) -> None:
    clean, (namespace, _) = loaded(None)[0], loaded(line)
    for x in INPUTS:
        assert namespace["run"](x) == clean["run"](x)
        assert traced(namespace["run"], x) == traced(clean["run"], x)
    assert namespace["run"].__doc__ == "Docstring."
    assert namespace["__doc__"] == clean["__doc__"]


def test_a_line_inside_a_statement_counts_as_the_statement() -> None:
    namespace, reach = loaded(line_of('int("x" if x > 3 else "1"),'))
    namespace["run"](4)  # raises in that very line, so that nothing after it runs
    assert reach.reached


def test_a_def_line_is_reached_when_the_function_is_called() -> None:
    namespace, reach = loaded(line_of("def inner(y):"))
    namespace["run"](1)
    assert not reach.reached
    namespace["run"](4)
    assert reach.reached


def test_a_line_at_module_level_is_reached_by_the_import() -> None:
    assert loaded(line_of("SCALE = 3"))[1].reached
