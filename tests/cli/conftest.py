"""A small dataset where the command line expects results, and the command line itself."""

import shutil

import pytest

from .command import Done, run_line, write_scenario


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    """No setting of the machine that runs the tests may colour, size or explain the output."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "MUTKV_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A folder with ``tiny.toml`` and its results: two groups, 20 cases."""
    folder = tmp_path_factory.mktemp("template")
    write_scenario(folder / "tiny.toml")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run_line(patch, "grid run tiny.toml") == 0
    return folder


@pytest.fixture
def here(template, tmp_path, monkeypatch):
    """The current folder: a copy of the template that a test may spoil."""
    folder = shutil.copytree(template, tmp_path / "here")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def mutkv(monkeypatch, capsys):
    """A function that runs a command line in this process."""

    def call(line):
        capsys.readouterr()
        code = run_line(monkeypatch, line)
        return Done(code, *capsys.readouterr())

    return call
