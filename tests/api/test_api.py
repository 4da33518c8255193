"""The Python API does what the command line does, and importing it costs nothing."""

import json
import subprocess
import sys

import pytest
import torch

import mutkv
from mutkv.configuration import Configuration
from mutkv.errors import UsageError
from mutkv.reference import Engine
from mutkv.weights import load_weights
from tests.cli.command import ROOT, environment, run_line, write_mutant
from tests.detectors.datasets import make_dataset


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return make_dataset(tmp_path_factory.mktemp("api") / "results" / "small", ("posfrozen", "tril"), seed=[0, 1])


def test_load_opens_a_folder_given_as_text_or_path_and_the_latest_without_one(results, monkeypatch):
    monkeypatch.chdir(results.folder.parents[1])
    for given in ([results.folder], [str(results.folder)], []):
        loaded = mutkv.load(*given)
        assert loaded.scenario == "small"
        assert loaded.cases.equals(results.cases)


def test_score_takes_results_a_folder_or_the_latest_and_gives_the_same(results, monkeypatch):
    monkeypatch.chdir(results.folder.parents[1])
    scores = [mutkv.score(*given, detectors=["one-step"]) for given in ([results], [results.folder], [])]
    assert scores[0] == scores[1] == scores[2]
    assert (scores[0].negatives, scores[0].positives + scores[0].harmless) == (4, 4)


def test_score_is_what_the_command_line_prints_as_json(results, monkeypatch, capsys):
    for arguments, line in (({}, ""), ({"label": "observable", "seed": 3}, "--label observable --seed 3")):
        capsys.readouterr()
        assert run_line(monkeypatch, f"score {results.folder} --json {line}") == 0
        assert mutkv.score(results, **arguments).to_json() == json.loads(capsys.readouterr().out)


def test_a_function_made_a_detector_is_scored_beside_a_shipped_one(results):
    @mutkv.detector(needs="logits", threshold=0.0)
    def my_every_step(case):
        """My rule."""
        return (case.cached.logits - case.full.logits).abs().amax()

    mine, shipped = mutkv.score(results, [my_every_step, "every-step"]).detectors
    assert (mine.name, my_every_step.summary) == ("my-every-step", "My rule.")
    for figure in ("recall", "recall_cases", "fpr", "auc", "flagged"):
        assert getattr(mine, figure) == getattr(shipped, figure)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"detectors": ["one-stp"]}, "unknown detector 'one-stp': did you mean one-step"),
        ({"label": "changed", "detectors": ["one-step"]}, "unknown label 'changed'"),
    ],
)
def test_unknown_names_are_refused(results, arguments, message):
    with pytest.raises(UsageError, match=message):
        mutkv.score(results, **arguments)


def logits_after_one_step(engine_class):
    """Return the cached path's logits after a prefill of four tokens and one more."""
    configuration = Configuration(head_dim=4, vocab=8)
    config = configuration.model("cpu")
    weights = load_weights(config, configuration.weights, configuration.sharpness, (0,))
    with torch.no_grad():
        session = engine_class(config, weights).open()
        session.extend(torch.tensor([[[1, 2, 3, 4]]]))
        return session.extend(torch.tensor([[[5]]]))


def test_inject_gives_a_mutated_reference_engine_beside_the_clean_one():
    clean = logits_after_one_step(Engine)
    with mutkv.inject("poszero") as package:
        mutated = logits_after_one_step(package.module("engine").Engine)
        assert package.module("engine").Engine is not Engine
        assert torch.equal(logits_after_one_step(Engine), clean)
    assert not torch.equal(mutated, clean)
    assert torch.equal(logits_after_one_step(Engine), clean)


def test_inject_takes_a_mutant_of_a_users_folder(tmp_path):
    with mutkv.inject("halfpos", folders=[write_mutant(tmp_path)]) as package:
        mutated = logits_after_one_step(package.module("engine").Engine)
    assert not torch.equal(mutated, logits_after_one_step(Engine))
    with pytest.raises(UsageError, match="unknown mutant 'halfpos'"), mutkv.inject("halfpos"):
        pass


@pytest.fixture
def other(tmp_path, monkeypatch):
    """A package of somebody else, and a folder with a mutant of it."""
    package = tmp_path / "somebodys_cache"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "store.py").write_text("def place(length):\n    return length + 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    patch = {"file": "store.py", "line": "return length + 1", "becomes": "return length"}
    changes = {"patch.reference": {**patch, "file": "engine.py"}, "patch.somebodys_cache": patch}
    yield write_mutant(tmp_path / "mine", **changes)
    for name in [name for name in sys.modules if name.startswith("somebodys_cache")]:
        del sys.modules[name]


def test_inject_swaps_a_line_of_another_package_while_the_block_runs(other):
    from somebodys_cache.store import place

    assert place(3) == 4
    with mutkv.inject("halfpos", "somebodys_cache", [other]) as reach:
        assert not reach.reached
        assert place(3) == 3
        assert reach.reached
    assert place(3) == 4


def test_inject_puts_the_line_back_when_the_block_raises(other):
    from somebodys_cache.store import place

    with pytest.raises(ZeroDivisionError), mutkv.inject("halfpos", "somebodys_cache", [other]):
        1 / (place(3) - 3)
    assert place(3) == 4


def test_a_name_that_is_not_public_is_no_attribute():
    with pytest.raises(AttributeError, match="module 'mutkv' has no attribute 'scor'"):
        mutkv.scor  # noqa: B018 - the access is the test
    assert not hasattr(mutkv, "judge")


def test_every_public_name_can_be_had():
    assert sorted(mutkv.__all__) == ["detector", "inject", "load", "score"]
    assert all(callable(getattr(mutkv, name)) for name in mutkv.__all__)


@pytest.mark.parametrize("module", ["mutkv", "mutkv.cli"])
def test_importing_loads_no_torch_and_none_of_its_friends(module):
    code = f"import sys, {module}; print(sorted({{'torch', 'pandas', 'numba', 'scipy', 'sklearn'}} & set(sys.modules)))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
