"""Datasets that are made once: they take a second, and no test changes them."""

import pytest

from .datasets import make_dataset


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """Eight mutants, clean and control at depth 1 and 2, two seeds, two rows."""
    return make_dataset(tmp_path_factory.mktemp("small"), seed=[0, 1], depth=[1, 2], batch=2)


@pytest.fixture(scope="session")
def single(tmp_path_factory):
    """One configuration: all cases have the same weights and tokens."""
    return make_dataset(tmp_path_factory.mktemp("single"), depth=2)


@pytest.fixture(scope="session")
def edges(tmp_path_factory):
    """Empty prompts, and runs without a step."""
    folder = tmp_path_factory.mktemp("edges")
    return {
        "empty prompt": make_dataset(folder / "empty", ("posoff",), prompt_length=0, steps=3),
        "no step": make_dataset(folder / "none", ("posoff",), prompt_length=2, steps=0),
    }
