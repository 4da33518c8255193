"""A shell completes commands, options and the names of detectors, mutants and scenarios."""

import shutil
import subprocess

import pytest

from mutkv.detectors import load_detectors
from mutkv.grid.scenario import scenario_files

from .command import SCRIPT, environment, run_line

POSITIONS = ["pos-low-precision", "posfrozen", "positions-doubled", "posoff", "poszero"]
NAMES = {
    "mutkv mutants show pos": POSITIONS,
    "mutkv mutants check tril pos": POSITIONS,
    "mutkv score --detector every-step --detector one": ["one-step"],
    "mutkv detectors li": ["list"],
    "mutkv score --fail": ["--fail-under", "--fail-under-low"],
    "mutkv grid run detectors-": ["detectors-learned", "detectors-near-tied", "detectors-trained"],
    "mutkv grid plan exact": ["exactness", "exactness-rope"],
    "mutkv scenarios show hand": ["handbook"],
    "mutkv completion z": ["zsh"],
    "mutkv mutants show nothing": [],
}


@pytest.fixture
def complete(monkeypatch, capsys):
    """A function that asks, as bash does, how a line may go on."""

    def ask(line):
        monkeypatch.setenv("_MUTKV_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        capsys.readouterr()
        assert run_line(monkeypatch, "") == 0
        out, err = capsys.readouterr()
        assert err == ""
        return [item.partition(",")[2] for item in out.splitlines() if item]

    return ask


@pytest.mark.parametrize("line", NAMES)
def test_a_name_is_completed(line, complete):
    assert complete(line) == NAMES[line]


def test_without_a_beginning_every_name_is_offered(complete):
    assert sorted(complete("mutkv score --detector ")) == sorted(load_detectors())
    assert complete("mutkv grid run ") == list(scenario_files())
    assert {"grid", "score", "mutants", "detectors", "scenarios", "completion"} <= set(complete("mutkv "))


def test_a_corpus_that_cannot_be_read_offers_nothing_and_says_nothing(complete, monkeypatch):
    from mutkv.errors import UsageError

    def broken(_):
        raise UsageError("mend it")

    monkeypatch.setattr("mutkv.mutation.registry._all", broken)
    assert complete("mutkv mutants show pos") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell, mutkv):
    done = mutkv(f"completion {shell}")
    assert done.code == 0
    assert f"_MUTKV_COMPLETE={shell}_complete" in done.out
    if path := shutil.which(shell):
        assert subprocess.run([path, "-n"], input=done.out, text=True, capture_output=True, timeout=60).stderr == ""


@pytest.mark.skipif(not (shutil.which("bash") and SCRIPT.exists()), reason="needs bash and the installed command")
def test_bash_with_the_script_completes_a_mutant():
    script = """
    eval "$(mutkv completion bash)"
    COMP_WORDS=(mutkv mutants show pos) COMP_CWORD=3
    $(complete -p mutkv | sed 's/.*-F \\([^ ]*\\).*/\\1/') mutkv pos show
    echo "${COMPREPLY[@]}"
    """
    path = environment()["PATH"]
    command = ["bash", "--norc", "-c", script]
    done = subprocess.run(
        command, env=environment(PATH=f"{SCRIPT.parent}:{path}"), capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == POSITIONS
