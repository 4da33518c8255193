"""What test workers do: a module of its own, so that a worker imports neither pytest's tests nor torch."""

import os
import signal
import sys
import time
from pathlib import Path

Group = tuple[str, ...]


class OddError(Exception):
    """Cannot be built from its own arguments, so pickle fails on it."""

    def __init__(self, left: str, right: str) -> None:
        super().__init__(f"{left} and {right}")


class Fatal(BaseException):
    """Like a time limit: not an Exception."""


def double(task: int) -> int:
    return 2 * task


def backwards(task: bytes) -> bytes:
    return task[::-1]


def environment(name: str) -> str | None:
    return os.environ.get(name)


def has_module(name: str) -> bool:
    return name in sys.modules


def process(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def initialize() -> None:
    time.sleep(0.3)
    os.environ["INITIALIZED"] = "yes"


def refuse() -> None:
    raise OSError("no device")


def die_now() -> None:
    os._exit(7)


def fail(kind: str) -> object:
    if kind == "lookup":
        raise LookupError(f"no {kind}")
    if kind == "os":
        raise FileNotFoundError(2, "no such file", "x")
    if kind == "fatal":
        raise Fatal("out of time")
    if kind == "odd":
        raise OddError("left", "right")
    if kind == "lambda":
        return lambda: None
    time.sleep(30)
    return None


def perform(group: Group) -> str:
    """Do the commands of a group: ``die:how``, ``once:how:marker file``, or anything else."""
    for command in group:
        word, *arguments = command.split(":")
        if word == "die":
            _die(arguments[0])
        if word == "once" and not Path(arguments[1]).exists():
            Path(arguments[1]).touch()
            _die(arguments[0])
    return "+".join(group)


def _die(how: str) -> None:
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), signal.Signals[how])
    time.sleep(30)


def halves(group: Group) -> list[Group]:
    middle = len(group) // 2
    return [group[:middle], group[middle:]] if middle else [group]


def whole(task: int) -> list[int]:
    return [task]


def abandon(task: object, reason: str) -> str:
    return f"gave up: {reason}"
