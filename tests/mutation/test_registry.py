"""Where mutants come from, and what happens when two places disagree."""

import os
from pathlib import Path

import pytest

from mutkv import resources
from mutkv.errors import UsageError
from mutkv.mutation.registry import find, load_mutants, load_shipped
from mutkv.resources import shipped

FILE = """
id = "{name}"
class = "{folder}"
summary = "s"
origin = "synthetic"
path = "cached"
acts = "always"
workloads = ["decode"]
first_visible = "step 1"
[patch.reference]
file = "engine.py"
line = "a"
becomes = "b"
[witness]
"""


def put(folder: Path, name: str, mutant_class: str = "mask", place: str | None = None) -> Path:
    path = folder / (place or f"{mutant_class}/{name}.toml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FILE.format(name=name, folder=mutant_class))
    return path


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shipped corpus of two, in a checkout of its own."""
    monkeypatch.setattr(resources, "PACKAGE", tmp_path / "checkout" / "mutkv")
    folder = tmp_path / "checkout" / "mutants"
    put(folder, "tril")
    put(folder, "posoff", "position")
    return folder


def test_shipped_files_are_found_beside_the_package_and_first_inside_it(corpus: Path) -> None:
    assert shipped("mutants") == corpus
    inside = resources.PACKAGE / "data" / "mutants"
    inside.mkdir(parents=True)
    assert shipped("mutants") == inside
    with pytest.raises(UsageError, match=r"no shipped scenarios in .*: reinstall mutkv"):
        shipped("scenarios")


def test_the_corpus_is_sorted_by_id() -> None:
    mutants = load_mutants()
    assert list(mutants) == ["posoff", "tril"]
    assert all(mutant.id == name for name, mutant in mutants.items())


def test_a_users_folder_may_have_any_layout(tmp_path: Path) -> None:
    put(tmp_path / "mine", "alpha", place="deep/er/anything.toml")
    put(tmp_path / "mine", "omega", place="flat.toml")
    assert list(load_mutants([tmp_path / "mine"])) == ["alpha", "omega", "posoff", "tril"]


@pytest.mark.parametrize("place", ["mask/other.toml", "position/wide.toml", "wide.toml", "mask/deep/wide.toml"])
def test_a_shipped_file_out_of_its_place_is_refused(corpus: Path, place: str) -> None:
    path = put(corpus, "wide", place=place)
    with pytest.raises(UsageError) as caught:
        load_shipped(corpus)
    assert str(caught.value) == f"{path}: by its class and id this file belongs at mask/wide.toml: move it"


def test_two_files_with_one_id_are_both_named(tmp_path: Path, corpus: Path) -> None:
    path = put(tmp_path / "mine", "tril")
    with pytest.raises(UsageError) as caught:
        load_mutants([tmp_path / "mine"])
    assert str(caught.value) == f"mutant 'tril' is in both {corpus / 'mask/tril.toml'} and {path}: rename one"


def test_one_folder_given_twice_is_no_conflict(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(corpus.parent)
    assert list(load_mutants([corpus, Path("mutants")])) == ["posoff", "tril"]


def test_a_folder_without_mutants_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "nowhere"):
        with pytest.raises(UsageError, match=rf"{name}: no mutant files \(\*\.toml\) in this folder: check the path"):
            load_mutants([tmp_path / name])


def test_a_mutant_is_found_by_id_and_a_near_miss_is_hinted_at() -> None:
    mutants = load_mutants()
    assert find(mutants, "tril").mutant_class == "mask"
    with pytest.raises(UsageError, match="unknown mutant 'trill': did you mean tril"):
        find(mutants, "trill")


def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, code: str, value: str) -> None:
    """Put a distribution with an entry point on the path, as an installer would."""
    site = tmp_path / "site"
    info = site / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[mutkv.mutants]\nextra = {value}\n")
    (site / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(site)


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("gives_text", "place = {path!r}"),
        ("gives_path", "from pathlib import Path\nplace = Path({path!r})"),
        ("gives_function", "def place():\n    return {path!r}"),
    ],
)
def test_another_package_adds_mutants_by_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, code: str
) -> None:
    put(tmp_path / "theirs", "alien")
    install(tmp_path, monkeypatch, module, code.format(path=os.fspath(tmp_path / "theirs")), f"{module}:place")
    assert list(load_mutants()) == ["alien", "posoff", "tril"]


@pytest.mark.parametrize(
    ("module", "code", "message"),
    [
        ("raises_at_import", "1 / 0", "cannot be loaded (ZeroDivisionError: division by zero): mend or uninstall"),
        ("raises_when_called", "def place():\n    raise OSError('a\\nb')", "cannot be loaded (OSError: a b): mend"),
        ("has_no_such_name", "", "cannot be loaded (AttributeError: "),
        ("gives_a_number", "place = 3", "gives a int: it should be a folder's path or return one"),
    ],
)
def test_a_broken_entry_point_is_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, code: str, message: str
) -> None:
    install(tmp_path, monkeypatch, module, code, f"{module}:place")
    with pytest.raises(UsageError) as caught:
        load_mutants()
    text = str(caught.value)
    assert text.startswith(f"entry point 'extra' of mutkv.mutants ({module}:place) ")
    assert message in text
    assert "\n" not in text
