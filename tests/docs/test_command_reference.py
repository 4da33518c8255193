"""docs/cli.md is what the commands say of themselves, of everything; the tables of mutants are their files."""

import importlib.util
import shutil

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


@pytest.fixture
def docs(tmp_path, monkeypatch):
    """A folder for the generator with the page of mutants, which it cannot make from nothing."""
    shutil.copy(ROOT / "docs" / "mutants.md", tmp_path)
    monkeypatch.setattr(generate, "DOCS", tmp_path)
    return tmp_path


def test_the_pages_are_fresh():
    assert generate.main(["--check"]) == 0


def test_check_refuses_a_stale_page_and_writing_mends_it(docs, capsys):
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err == "cli.md is stale: run python docs/generate.py\n"
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    (docs / "cli.md").write_text("# Command reference\n")
    assert generate.main(["--check"]) == 1


def test_a_stale_table_of_mutants_is_refused_and_mended_and_what_is_written_by_hand_stays(docs, capsys):
    generate.main([])
    page = docs / "mutants.md"
    made = page.read_text()
    changed = made.replace("# Mutants\n", "# Mutants\n\nBy hand.\n") + "\nBy hand, below.\n"
    page.write_text(changed.replace("| `tril` |", "| `trill` |"))
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err == "mutants.md is stale: run python docs/generate.py\n"
    assert generate.main([]) == 0
    assert page.read_text() == changed


@pytest.mark.parametrize("spoil", [lambda text: text.replace(generate.END, ""), lambda text: text + generate.BEGIN])
def test_a_page_of_mutants_without_its_two_comments_is_left_as_it_is(docs, spoil):
    page = docs / "mutants.md"
    page.write_text(spoil(page.read_text()))
    before = page.read_text()
    with pytest.raises(SystemExit, match="needs these two lines once"):
        generate.main([])
    assert page.read_text() == before
