"""Command lines run in this process or in one of their own, and the files that they are run on."""

import io
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import sysconfig
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from mutkv.cli.app import run

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(sysconfig.get_path("scripts")) / "mutkv"
AXES = 'seed = [0, 1]\ndepth = [1, 2]\nhead_dim = 4\nvocab = 8\nprompt_length = 3\nsteps = 3\npositions = "rope"\n'
MUTANTS = ("posfrozen", "stale", "tril")
HALFPOS = {
    "id": "halfpos",
    "class": "position",
    "summary": "made by a test",
    "origin": "synthetic",
    "path": "cached",
    "acts": "decode",
    "workloads": ["decode"],
    "features": [],
    "first_visible": "step 1",
    "hidden_by": ["prefill"],
    "patch.reference": {"file": "session.py", "line": "start = self.length", "becomes": "start = self.length // 2"},
    "witness": {"prompt_length": 4},
}


class Done(NamedTuple):
    """What a finished command left: its exit code and its two streams."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """Stdout as the one JSON document that it must be."""
        return json.loads(self.out)

    @property
    def line(self):
        """Stderr as the one line of an error, without its prefix."""
        assert self.err.count("\n") == 1
        assert self.err.endswith("\n")
        assert self.err.startswith("mutkv: ")
        return self.err.strip().removeprefix("mutkv: ")


def words(line):
    """Return a command line as a list of arguments."""
    return shlex.split(line) if isinstance(line, str) else list(line)


def run_line(patch, line):
    """Run a command line in this process and return its exit code."""
    patch.setattr(sys, "argv", ["mutkv", *words(line)])
    return int(run())


def write_scenario(path, name="tiny", mutants=MUTANTS, axes=AXES, table="mutants"):
    """Write a scenario file."""
    header = f'name = "{name}"\nsummary = "made by a test"\ntable = "{table}"\nmutants = {list(mutants)}\n'
    Path(path).write_text(f"{header}[axes]\n{axes}")


def write_mutant(folder, **changes):
    """Write a ninth mutant's file into a folder, with some of its keys changed, and return the folder."""
    keys = HALFPOS | changes
    plain = {key: value for key, value in keys.items() if not isinstance(value, dict)}
    tables = {key: value for key, value in keys.items() if isinstance(value, dict)}
    lines = [f"{key} = {json.dumps(value)}" for key, value in plain.items()]
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    folder.mkdir(exist_ok=True)
    (folder / f"{keys['id']}.toml").write_text("\n".join(lines) + "\n")
    return folder


def parts(folder, kind="cases"):
    """Return the Parquet files of a dataset's folder."""
    return sorted((Path(folder) / kind).glob("*.parquet"))


def content(folder):
    """Return the bytes of every file below a folder."""
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def environment(**changes):
    """Return the environment of a command in a process of its own: this checkout, one thread, no colours forced."""
    kept = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR", "COLUMNS")}
    return kept | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **changes}


def start(line, stdout=subprocess.PIPE, **changes):
    """Start the installed command as the leader of a process group, with Ctrl-C as a terminal leaves it."""
    if not SCRIPT.exists():
        pytest.skip("the mutkv command is not installed")
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *words(line)],
        env=environment(**changes),
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell leaves it ignored
    )


@contextmanager
def terminal(patch):
    """Make stdout and stderr one terminal; yields a list that holds all it was sent once the block is left."""
    master, slave = pty.openpty()
    received, chunks = [], []

    def read():
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:  # the other end is closed
                return
            chunks.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    screen = io.TextIOWrapper(os.fdopen(slave, "wb"), encoding="utf-8", write_through=True)
    try:
        with patch.context() as streams:
            streams.setenv("TERM", "xterm-256color")
            streams.setattr(sys, "stdout", screen)
            streams.setattr(sys, "stderr", screen)
            yield received
    finally:
        screen.close()
        reader.join()
        os.close(master)
        received.append(b"".join(chunks).decode())
