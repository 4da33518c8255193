"""Where the files that mutkv ships lie: inside an installed wheel, or beside the package in a checkout."""

from pathlib import Path
from typing import Literal

from mutkv.errors import UsageError

PACKAGE = Path(__file__).resolve().parent


def shipped(kind: Literal["mutants", "scenarios"]) -> Path:
    """Return the folder of the shipped mutants or scenarios.

    Raises:
        UsageError: the installation has no such folder.
    """
    # The wheel's folder first: site-packages may hold a stranger's package called "mutants".
    places = (PACKAGE / "data" / kind, PACKAGE.parent / kind)
    for place in places:
        if place.is_dir():
            return place
    raise UsageError(f"no shipped {kind} in {places[0]} or {places[1]}: reinstall mutkv")
