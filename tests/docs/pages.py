"""The pages of this checkout: their text, code blocks and tables."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def text_of(name):
    """Return a page's text."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name, language):
    """Return a page's code blocks of one language."""
    return [code for kind, code in BLOCK.findall(text_of(name)) if kind == language]


def all_blocks(language):
    """Return test parameters for all code blocks of one language: page, code."""
    found = [(page, number, code) for page in markdown() for number, code in enumerate(blocks(page, language), 1)]
    return [pytest.param(page, code, id=f"{page} {number}") for page, number, code in found]


def tables(name):
    """Return the rows of all tables of a page as lists of cells; an escaped bar stays in its cell."""
    lines = (line for line in text_of(name).splitlines() if line.startswith("|"))
    rows = [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in rows if set(row[0]) != {"-"}]


def named(name, column=0):
    """Return everything in code quotes in one column of a page's tables."""
    return {word for row in tables(name) if len(row) > column for word in re.findall(r"`([^`]+)`", row[column])}


def row_of(name, first):
    """Return the cells of the one row whose first cell is this name in code quotes."""
    [row] = [row for row in tables(name) if row[0] == f"`{first}`"]
    return row


def markdown():
    """Return the names of all pages, without those that a run or a tool left behind."""
    return sorted(name for name in files() if name.endswith(".md"))


def files():
    """Return the names of all files that git tracks, or would track if they were added."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    if not (ROOT / ".git").exists():
        return [str(path.relative_to(ROOT)) for path in ROOT.rglob("*.md")]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in listed if (ROOT / name).is_file()]
