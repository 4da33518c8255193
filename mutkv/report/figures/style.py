"""One look for all figures, readable without colour: a line is told by its marker and dashes as well.

Figures are written as SVG and PNG, without dates or random names, so that one dataset gives the same bytes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mutkv.grid.files import replacing

STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
    "savefig.dpi": 150,
    "svg.fonttype": "none",
    "svg.hashsalt": "mutkv",
}
COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7f7f7f", "#56b4e9", "#e69f00")
"""Okabe and Ito's palette, which colour-blind readers can tell apart, from dark to light."""
MARKERS = ("o", "s", "^", "v", "D", "P", "X", "*")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))


@contextmanager
def styled() -> Iterator[None]:
    """Apply the look while the block runs, whatever the user's own settings of matplotlib are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)  # type: ignore[arg-type]
        yield


def line_style(index: int) -> dict[str, Any]:
    """Return colour, marker and dashes of line number ``index``; no two of 64 look alike."""
    turn = (index + index // 8) % 8
    return {"color": COLOURS[turn], "marker": MARKERS[index % 8], "linestyle": DASHES[turn]}


def panels(width: float, height: float, columns: int, rows: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure of ``width`` × ``height`` inches and its axes, row by row."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(axes.flat)


def shared_legend(figure: Figure, axes: Sequence[Axes], columns: int) -> None:
    """Put the legends of these panels below all of them."""
    entries = [entry for panel in axes for entry in zip(*panel.get_legend_handles_labels(), strict=True)]
    handles, labels = zip(*entries, strict=True)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def plain_ticks(axes: Axes, values: Sequence[float]) -> None:
    """Label these places of the x axis with their numbers, where a logarithmic axis would write powers."""
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.tick_params(axis="x", which="minor", bottom=False)


def save(figure: Figure, folder: Path, name: str) -> Sequence[Path]:
    """Write ``name.svg`` and ``name.png`` into a folder; return their paths.

    Raises:
        UsageError: the folder cannot be written.
    """
    metadata = {"svg": {"Date": None}, "png": {"Software": None}}
    paths = [folder / f"{name}.{kind}" for kind in metadata]
    for path, about in zip(paths, metadata.values(), strict=True):
        with replacing(path) as temporary:
            figure.savefig(temporary, format=path.suffix[1:], metadata=about)
    return paths
