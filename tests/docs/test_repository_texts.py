"""What holds for all texts of the repository: links lead somewhere, and nothing names one person's machine."""

import re

import pytest

from .pages import ROOT, blocks, files, markdown, text_of

# In pieces, because this file is searched as well.
FORBIDDEN = re.compile(
    "|".join(
        (
            r"/wor" + r"k\b",
            r"\.\./sh" + "ared/",
            r"/roo" + r"t/",
            r"/hom" + r"e/\w",
            r"py" + r"pi\.org",
            "python" + "hosted",
            r"download\.py" + "torch",
        )
    )
)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def test_no_text_names_a_machine_path_or_a_package_host():
    contents = {name: (ROOT / name).read_bytes() for name in files()}
    texts = {name: content.decode() for name, content in contents.items() if b"\0" not in content}
    found = {name: FORBIDDEN.search(text) for name, text in texts.items()}
    assert {name: match[0] for name, match in found.items() if match} == {}
    assert len(texts) > 100 or not (ROOT / ".git").exists()


@pytest.mark.parametrize("page", markdown())
def test_relative_links_lead_to_files(page):
    prose = re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    for target in LINK.findall(prose):
        if not target.startswith(("https://", "http://")):
            assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_every_page_is_linked_from_the_readme(page):
    assert f"](docs/{page})" in text_of("README.md")


def test_the_readme_has_one_test_command_that_sets_up_all_it_needs():
    [command] = [line for line in text_of("README.md").splitlines() if line.endswith("pytest")]
    assert command.startswith("python3 -m venv .venv && ")
    assert [f"{command}\n"] == [code for code in blocks("README.md", "sh") if "pytest" in code]


def test_ci_runs_the_readme_test_command():
    script = text_of(".ci/run")
    assert "test_command=$(grep --max-count=1 'pytest$' README.md)" in script
    assert re.search(r'bash .*-c "\$test_command"', script)


def test_the_first_screen_of_the_readme_ends_with_what_the_first_command_prints():
    first_screen = "\n".join(text_of("README.md").splitlines()[:45])
    assert "mutkv grid run && " in first_screen
    assert " one-step " in first_screen
