"""docs/cli.md is what the commands say of themselves, and they say it of everything."""

import importlib.util

import click
import pytest

from .pages import ROOT, text_of


def load_generator():
    spec = importlib.util.spec_from_file_location("generate_command_reference", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = load_generator()
CONTEXTS = list(generate.contexts(generate.cli.make_context("mutkv", [], resilient_parsing=True)))
by_path = pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: context.command_path)


def test_there_are_commands_of_every_group():
    paths = {context.command_path for context in CONTEXTS}
    assert {"mutkv", "mutkv grid run", "mutkv score", "mutkv mutants check", "mutkv completion"} <= paths


@by_path
def test_every_command_has_help_and_its_section(context):
    assert context.command.help
    assert f"\n## {context.command_path}\n" in text_of("docs/cli.md")
    assert generate.section(context) in text_of("docs/cli.md")


@by_path
def test_every_option_has_help_and_its_row(context):
    section = generate.section(context)
    for option in (each for each in context.command.get_params(context) if isinstance(each, click.Option)):
        assert option.help, f"{context.command_path} {option.opts[0]} has no help"
        assert any(line.startswith("| `") and option.opts[-1] in line for line in section.splitlines())


def test_the_page_is_fresh():
    assert generate.main(["--check"]) == 0


def test_check_refuses_a_stale_page_and_writing_mends_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generate, "PAGE", tmp_path / "cli.md")
    assert generate.main(["--check"]) == 1
    assert "run python docs/generate.py" in capsys.readouterr().err
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    (tmp_path / "cli.md").write_text("# Command reference\n")
    assert generate.main(["--check"]) == 1
