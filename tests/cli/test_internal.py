"""Exit code 70, and what is not one: a fault of mutkv itself is one line, unless MUTKV_DEBUG asks where."""

import os

import pytest

from .command import start


@pytest.fixture
def fault(monkeypatch):
    def raise_fault(*_):
        raise RuntimeError("odd\n  thing")

    monkeypatch.setattr("mutkv.mutation.registry._all", raise_fault)


@pytest.mark.parametrize("line", ["mutants list", "mutants list --json", "grid run", "mutants show tril"])
def test_an_internal_error_is_one_line_and_no_traceback(line, fault, mutkv):
    done = mutkv(line)
    assert (done.code, done.out) == (70, "")
    assert done.line == "internal error: RuntimeError: odd thing (MUTKV_DEBUG=1 shows where)"


def test_mutkv_debug_shows_where_an_internal_error_is_raised(fault, mutkv, monkeypatch):
    monkeypatch.setenv("MUTKV_DEBUG", "1")
    done = mutkv("mutants list")
    assert (done.code, done.out) == (70, "")
    assert done.err.startswith("Traceback (most recent call last):\n")
    assert "in raise_fault" in done.err
    assert done.err.splitlines()[-1].startswith("mutkv: internal error: RuntimeError: odd thing")


def test_mutkv_debug_adds_no_traceback_to_an_error_of_the_user(mutkv, monkeypatch):
    monkeypatch.setenv("MUTKV_DEBUG", "1")
    done = mutkv("mutants show posfrozn")
    assert done.code == 2
    assert done.line.startswith("unknown mutant")


@pytest.mark.parametrize("line", ["--version", "completion bash"])
def test_a_reader_that_left_is_no_error(line):
    reader, writer = os.pipe()
    os.close(reader)
    process = start(line, stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


@pytest.mark.parametrize(("limit", "code"), [("1", 1), ("0.1", 0)])
def test_a_gate_keeps_its_exit_code_when_the_reader_left(limit, code, here):
    reader, writer = os.pipe()
    os.close(reader)
    process = start(f"score results/tiny --json --detector one-step --fail-under {limit}", stdout=writer)
    os.close(writer)
    process.communicate(timeout=60)
    assert process.returncode == code
