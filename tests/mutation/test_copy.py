"""A mutated copy beside the clean package: what is the copy's, what is shared, and what a failure leaves behind."""

import importlib
import linecache
import pickle
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mutkv.errors import UsageError
from mutkv.mutation.copy import load_copy

from .conftest import ENGINE, MakeMutant

PACKAGE = "tinyhouse.engine"
START = ("session.py", "start = self.cache.length", "start = self.cache.length + 1", "Session.extend")


def clean(name: str) -> ModuleType:
    return importlib.import_module(f"{PACKAGE}.{name}")


def everything() -> dict[str, Any]:
    """All process state that a copy could leave something in."""
    importlib.import_module(f"{PACKAGE}.session")
    return {
        "modules": dict(sys.modules),
        "finders": list(sys.meta_path),
        "parent": dict(vars(sys.modules["tinyhouse"])),
        "package": dict(vars(sys.modules[PACKAGE])),
        "session": dict(vars(sys.modules[f"{PACKAGE}.session"])),
    }


def test_the_copy_runs_the_mutated_line_and_the_clean_package_its_own(mutant: MakeMutant) -> None:
    copied, original = load_copy(PACKAGE, mutant(*START)).module("session").Session(), clean("session").Session()
    assert [original.extend(5), original.extend(5), original.extend(5)] == [0, 1, 2]
    assert [copied.extend(5), copied.extend(5), copied.extend(5)] == [1, 2, 3]


def test_every_spelling_of_an_import_leads_to_the_copy(mutant: MakeMutant) -> None:
    copy = load_copy(PACKAGE, mutant(*START))
    session, cache = copy.module("session"), copy.module("cache").Cache
    assert len(session.CACHES) == 7
    assert all(found is cache for found in session.CACHES)
    assert session.Session().late() is cache
    assert cache is not clean("cache").Cache
    assert copy.module().Cache is cache


def test_modules_outside_the_package_are_the_real_ones(mutant: MakeMutant) -> None:
    shared = importlib.import_module("tinyhouse.shared").Shared
    copy = load_copy(PACKAGE, mutant(*START))
    assert copy.module("session").Session().shared is shared
    assert copy.module("cache").Cache().shared is shared


def test_a_patched_module_is_the_copys_whoever_imports_it(mutant: MakeMutant) -> None:
    copy = load_copy(PACKAGE, mutant("inner/steps.py", "STEP = LIMIT // 100", "STEP = LIMIT // 50"))
    assert (copy.module("session").STEP, clean("session").STEP) == (2, 1)


def test_the_package_itself_can_be_patched(mutant: MakeMutant) -> None:
    copy = load_copy(PACKAGE, mutant("__init__.py", '__all__ = ["Cache"]', "__all__ = []"))
    assert (copy.module().__all__, importlib.import_module(PACKAGE).__all__) == ([], ["Cache"])
    assert f"{copy.name}.__init__" not in sys.modules


def test_loading_leaves_the_clean_package_as_it_was(mutant: MakeMutant) -> None:
    before = everything()
    load_copy(PACKAGE, mutant(*START, name="leaves-clean"))
    after = everything()
    assert after["package"] == before["package"]
    assert after["session"] == before["session"]
    own = {name for name in after["modules"] if name not in before["modules"]}
    assert own
    assert all(name.startswith("tinyhouse.engine__") and "leaves" not in name for name in own)
    assert all(after["modules"][name] is module for name, module in before["modules"].items())


@pytest.mark.parametrize(
    ("becomes", "cause"),
    [
        ("STEP = LIMIT // 0", ZeroDivisionError),
        ("STEP = NOWHERE", NameError),
        ("from nowhere import STEP", ImportError),
    ],
)
def test_a_patch_that_raises_at_import_is_one_line_and_leaves_nothing_behind(
    mutant: MakeMutant, becomes: str, cause: type[Exception]
) -> None:
    before = everything()
    broken = mutant("inner/steps.py", "STEP = LIMIT // 100", becomes)
    with pytest.raises(UsageError, match=r"^<memory>: inner/steps\.py raises \w+ when it is imported \(.*\): mend"):
        load_copy(PACKAGE, broken)
    with pytest.raises(UsageError) as caught:
        load_copy(PACKAGE, broken)
    error = caught.value.__cause__
    assert isinstance(error, cause)
    assert traceback.extract_tb(error.__traceback__)[-1].line == becomes
    assert "\n" not in str(caught.value)
    assert everything() == before


def test_an_interrupt_during_import_passes_and_leaves_nothing_behind(mutant: MakeMutant) -> None:
    before = everything()
    with pytest.raises(KeyboardInterrupt):
        load_copy(PACKAGE, mutant("inner/steps.py", "STEP = LIMIT // 100", "raise KeyboardInterrupt"))
    assert everything() == before


def test_a_patch_that_does_not_fit_names_the_mutants_file_and_leaves_nothing_behind(mutant: MakeMutant) -> None:
    before = everything()
    with pytest.raises(UsageError, match=r"^<memory>: session\.py: line 'start = 1' not found"):
        load_copy(PACKAGE, mutant("session.py", "start = 1", "start = 2"))
    assert everything() == before


def test_a_traceback_shows_the_mutated_line_and_its_number(mutant: MakeMutant) -> None:
    becomes = "start = self.cache.nowhere"
    session = load_copy(PACKAGE, mutant("session.py", START[1], becomes, START[3])).module("session").Session()
    linecache.checkcache()
    with pytest.raises(AttributeError) as caught:
        session.extend(5)
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    lines = (ENGINE / "session.py").read_text().splitlines()
    assert frame.line == becomes
    assert lines[frame.lineno - 1].strip() == START[1]
    assert frame.filename == f"{ENGINE / 'session.py'} [shifted]"


def test_a_traceback_through_an_unpatched_module_shows_its_file(mutant: MakeMutant) -> None:
    cache = load_copy(PACKAGE, mutant(*START)).module("cache").Cache()
    with pytest.raises(IndexError) as caught:
        cache.last()
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (frame.filename, frame.line) == (str(ENGINE / "cache.py"), "return self.rows[-1]")


def test_reached_follows_the_line_and_can_be_reset(mutant: MakeMutant) -> None:
    copy = load_copy(PACKAGE, mutant(*START, name="reached"))
    session = copy.module("session").Session()
    session.crop(0)
    assert not copy.reached
    session.extend(5)
    assert copy.reached
    copy.reset_reached()
    assert not copy.reached
    session.extend(5)
    assert copy.reached


def test_a_line_that_ran_at_import_stays_reached(mutant: MakeMutant) -> None:
    copy = load_copy(PACKAGE, mutant("cache.py", "LIMIT = 100", "LIMIT = 200"))
    copy.reset_reached()
    assert copy.reached


def test_two_mutants_live_side_by_side(mutant: MakeMutant) -> None:
    one = load_copy(PACKAGE, mutant(*START))
    two = load_copy(PACKAGE, mutant(START[0], START[1], "start = 7", START[3]))
    two.reset_reached()
    assert one.module("session").Session().extend(5) == 1
    assert not two.reached
    assert two.module("session").Session().extend(5) == 7


def test_a_copy_is_made_once_per_patch(mutant: MakeMutant) -> None:
    assert load_copy(PACKAGE, mutant(*START)) is load_copy(PACKAGE, mutant(*START))
    assert load_copy(PACKAGE, mutant(*START)) is not load_copy(PACKAGE, mutant(*START, name="other"))


def test_objects_of_the_copy_survive_pickling(mutant: MakeMutant) -> None:
    cache = load_copy(PACKAGE, mutant(*START)).module("cache").Cache([1, 2])
    again = pickle.loads(pickle.dumps(cache))
    assert type(again) is type(cache)
    assert again == cache


def test_no_compiled_file_is_written_for_a_copy(mutant: MakeMutant) -> None:
    before = set(ENGINE.rglob("*.pyc"))
    load_copy(PACKAGE, mutant(*START, name="uncompiled")).module("late")
    assert set(ENGINE.rglob("*.pyc")) == before


def test_a_top_level_package_can_be_copied(mutant: MakeMutant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").write_text("import engine\nimport engine.one as one\n\nSELF = engine\n")
    (tmp_path / "engine" / "one.py").write_text("def value():\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    copy = load_copy("engine", mutant("one.py", "return 1", "return 2"))
    assert copy.module().one.value() == 2
    assert copy.module().SELF is copy.module()
    assert importlib.import_module("engine").one.value() == 1


@pytest.mark.parametrize(
    ("package", "code", "message"),
    [
        (
            "plain",
            "import plain.one\n",
            r"__init__\.py, line 1: 'import plain\.one' cannot lead .* 'from plain import one'",
        ),
        ("namespace", None, r"package 'namespace' has no __init__\.py"),
    ],
)
def test_a_package_that_cannot_be_redirected_is_refused(
    mutant: MakeMutant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str, code: str | None, message: str
) -> None:
    (tmp_path / package).mkdir()
    (tmp_path / package / "one.py").write_text("VALUE = 1\n")
    if code:
        (tmp_path / package / "__init__.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    wanted = mutant("one.py", "VALUE = 1", "VALUE = 2")
    wanted = wanted.model_copy(update={"patch": {package: wanted.patch["engine"]}})
    with pytest.raises(UsageError, match=message):
        load_copy(package, wanted)


@pytest.mark.parametrize(
    ("package", "file", "message"),
    [
        (
            "tinyhouse.engine",
            "sesion.py",
            "unknown file of package tinyhouse.engine 'sesion.py': did you mean session.py",
        ),
        ("tinyhouse.engine", "../shared.py", "unknown file of package"),
        ("nowhere.engine", "a.py", "no package 'nowhere.engine': install it or check its name"),
        ("tinyhouse.nowhere", "a.py", "no package 'tinyhouse.nowhere'"),
        ("solo", "solo.py", "'solo' is a single module"),
    ],
)
def test_a_place_that_does_not_exist_is_named(mutant: MakeMutant, package: str, file: str, message: str) -> None:
    wanted = mutant(file, "class Shared:", "class Shared(list):")
    wanted = wanted.model_copy(update={"patch": {package: wanted.patch["engine"]}})
    with pytest.raises(UsageError) as caught:
        load_copy(package, wanted)
    assert message in str(caught.value)
