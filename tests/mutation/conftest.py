"""A tiny engine package to mutate, and mutants of it made from a few words."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mutkv.mutation.mutant import Mutant

FIXTURES = Path(__file__).parent / "fixtures"
ENGINE = FIXTURES / "tinyhouse" / "engine"

sys.path.insert(0, str(FIXTURES))

TABLE: dict[str, Any] = {
    "id": "shifted",
    "class": "position",
    "summary": "positions are off",
    "origin": "synthetic",
    "path": "cached",
    "acts": "always",
    "workloads": ["decode"],
    "first_visible": "step 1",
    "witness": {},
}

MakeMutant = Callable[..., Mutant]


@pytest.fixture
def mutant() -> MakeMutant:
    """A function that makes a mutant of the tiny engine: file, line, becomes and, optionally, within and id."""

    def make(file: str, line: str, becomes: str, within: str | None = None, name: str = "shifted") -> Mutant:
        patch = {"file": file, "line": line, "becomes": becomes, "within": within}
        return Mutant.model_validate({**TABLE, "id": name, "patch": {"engine": patch}})

    return make
