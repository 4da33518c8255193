"""Where detectors come from: by name, from a user's file, from another package; and one line when they do not."""

import sys

import pytest

from mutkv.detectors import default_detectors, find_detector, judge, load_detectors, shipped_detectors
from mutkv.errors import UsageError

SOURCE = '''
import math

import mutkv.detectors
from helper_of_mine import FACTOR

@mutkv.detectors.detector(needs="text", threshold=0.5, name="renamed")
def decorated(case):
    """Mine."""
    return FACTOR

def plain_check(case):
    """Plain."""
    return (case.cached.logits - case.full.logits).abs().amax()

class Callable:
    def __call__(self, case):
        return 0.0

instance = Callable()
number = 3
'''


@pytest.fixture
def file(tmp_path):
    (tmp_path / "helper_of_mine.py").write_text("FACTOR = 2.0\n")
    path = tmp_path / "checks.py"
    path.write_text(SOURCE)
    yield path
    sys.modules.pop("helper_of_mine", None)


def refusal(spec):
    with pytest.raises(UsageError) as caught:
        find_detector(str(spec))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_shipped_detector_is_found_by_its_name():
    assert len(shipped_detectors()) == 10
    assert all(find_detector(shipped.name) is shipped for shipped in shipped_detectors())


def test_the_default_is_every_shipped_one_that_a_dataset_is_enough_for():
    assert [d.name for d in shipped_detectors() if d not in default_detectors()] == ["kv-compare"]


def test_a_near_miss_is_hinted_at():
    assert refusal("one_step").startswith("unknown detector 'one_step': did you mean one-step or ")
    assert refusal("zzz").startswith("unknown detector 'zzz': known: allclose, argmax-every-step")


def test_a_decorated_function_of_a_file_is_itself(file):
    found = find_detector(f"{file}:decorated")
    assert (found.name, found.needs, found.threshold, found.summary) == ("renamed", "text", 0.5, "Mine.")
    assert found(None) == 2.0  # from the module beside the file


def test_a_plain_function_needs_logits_with_threshold_zero(file, small):
    found = find_detector(f"{file}:plain_check")
    assert (found.name, found.needs, found.threshold, found.summary) == ("plain-check", "logits", 0.0, "Plain.")
    frame = judge(small, [found, find_detector("every-step")]).frame
    mine, theirs = (rows.reset_index(drop=True) for _, rows in frame.groupby("detector", sort=False))
    assert mine["score"].equals(theirs["score"])


def test_an_object_that_can_be_called_is_taken_by_its_name(file):
    assert find_detector(f"{file}:instance").name == "instance"


def test_the_file_leaves_no_trace_in_the_search_path(file):
    before = list(sys.path)
    find_detector(f"{file}:decorated")
    assert sys.path == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("decorate", "unknown function of {file} 'decorate': did you mean decorated?"),
        ("zzz", "unknown function of {file} 'zzz': known: decorated, plain_check"),
        ("number", "{file}:number: is of type int, not a detector: name a function that takes a case"),
        ("Callable", "{file}:Callable: is a class, not a detector: name a function that takes a case"),
        ("", "unknown function of {file} '': known: decorated, plain_check"),
    ],
)
def test_what_is_no_detector_in_a_file_is_refused(file, name, message):
    assert refusal(f"{file}:{name}") == message.format(file=file)


def test_a_file_without_a_function_is_asked_for_one(file):
    assert refusal(file) == f"detector '{file}': names no function: write {file}:FUNCTION"


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert refusal(tmp_path / "none.py:check") == f"{tmp_path / 'none.py'}: no such file: check the path"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("x = 1\n1 / 0\n", "raises ZeroDivisionError at line 2 when it is run (division by zero): mend it"),
        ("def f(:\n", "raises SyntaxError at line 1 when it is run ("),
        ("import sys\n\nsys.exit(4)\n", "raises SystemExit at line 3 when it is run (4): mend it"),
        ("import not_a_module_of_anyone\n", "raises ModuleNotFoundError at line 1 when it is run ("),
        (
            "import mutkv.detectors\n@mutkv.detectors.detector(needs='logit')\ndef f(case): ...\n",
            "detector 'f': unknown needs 'logit': did you mean logits?",
        ),
    ],
)
def test_a_file_that_raises_is_one_line(tmp_path, source, reason):
    path = tmp_path / "broken.py"
    path.write_text(source)
    assert refusal(f"{path}:f").startswith(f"{path}: {reason}")


def test_ctrl_c_while_a_file_is_run_ends_it(tmp_path):
    path = tmp_path / "slow.py"
    path.write_text("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        find_detector(f"{path}:f")


def install(tmp_path, monkeypatch, module, code, value):
    """Put a distribution with an entry point on the path, as an installer would."""
    site = tmp_path / "site"
    info = site / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[mutkv.detectors]\nextra = {value}\n")
    (site / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(site)


def test_another_package_adds_a_detector(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "their_checks", "def their_rule(case):\n    return 0.0\n", "their_checks:their_rule")
    assert find_detector("their-rule").needs == "logits"
    assert list(load_detectors())[-1] == "their-rule"


@pytest.mark.parametrize(
    ("module", "code", "message"),
    [
        (
            "raises_here",
            "1 / 0",
            "cannot be loaded (ZeroDivisionError: division by zero): mend or uninstall its package",
        ),
        ("lacks_name", "", "cannot be loaded (AttributeError: "),
        ("gives_number", "rule = 3", ": is of type int, not a detector"),
        ("takes_name", "def one_step(case): ...\nrule = one_step", "there is a detector 'one-step' already"),
    ],
)
def test_a_broken_entry_point_is_one_line(tmp_path, monkeypatch, module, code, message):
    install(tmp_path, monkeypatch, module, code, f"{module}:rule")
    text = refusal("one-step")
    assert text.startswith(f"entry point 'extra' of mutkv.detectors ({module}:rule)")
    assert message in text
