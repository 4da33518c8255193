"""The figure of ``rounding``: how often two orders of addition agree, and whose tokens they change."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mutkv.report.figures.style import COLOURS, panels, shared_legend
from mutkv.report.tables.rounding import CONTROL, TWO_ORDERS

FORMATS = ("float64", "float32", "bfloat16")
HATCHES = ("", "///", "...")
WIDTH = 0.26


def rounding_figure(tables: dict[str, pd.DataFrame]) -> Figure:
    """Draw positions that agree exactly, and runs whose tokens differ with a cache and without."""
    agreement, flips = tables["agreement"], tables["flips"]
    kinds = list(agreement["weights"].unique())
    figure, axes = panels(3.6 * (len(kinds) + 1), 3.8, len(kinds) + 1)
    draw_agreement(axes[0], agreement[agreement["weights"] == kinds[0]])
    axes[0].set_title(f"two full passes in two orders, {kinds[0]} weights")
    for weights, panel in zip(kinds, axes[1:], strict=True):
        draw_flips(panel, flips[flips["weights"] == weights])
        panel.set_title(f"{weights} weights, {flips['runs'].max()} runs each (95 % intervals)")
    shared_legend(figure, axes[:2], 5)
    return figure


def draw_agreement(axes: Axes, agreement: pd.DataFrame) -> None:
    """Draw bars per accumulator and storage."""
    for index, storage in enumerate(FORMATS):
        shares = agreement[agreement["storage"] == storage].set_index("accumulator")["equal %"].reindex(FORMATS)
        places = np.arange(3) + (index - 1) * WIDTH
        look: dict[str, Any] = {
            "color": COLOURS[(0, 6, 7)[index]],
            "edgecolor": "black",
            "hatch": HATCHES[index],
            "alpha": 0.75,
        }
        bars = axes.bar(places, shares, WIDTH, label=f"stored in {storage}", **look)
        axes.bar_label(bars, [f"{share:.3g}" for share in shares], fontsize=7)
    axes.set_xticks(range(3), FORMATS)
    axes.set_xlabel("accumulator")
    axes.set_ylabel("positions that agree in every bit (%)")
    axes.set_ylim(0, 108)


def draw_flips(axes: Axes, flips: pd.DataFrame) -> None:
    """Draw the share of runs whose tokens differ, with Wilson intervals, for every format."""
    flips = flips[flips["runs"] == flips["runs"].max()]
    for index, comparison in enumerate((TWO_ORDERS, CONTROL)):
        rows = flips[flips["comparison"] == comparison]
        share = rows["flipped"] / rows["runs"]
        errors = np.array([share - rows["low"], rows["high"] - share]).clip(0)
        places = np.arange(len(rows)) + (index - 0.5) * 0.3
        look: dict[str, Any] = {
            "marker": "os"[index],
            "color": COLOURS[2 * index],
            "markerfacecolor": ("black", "white")[index],
        }
        axes.errorbar(places, 100 * share, 100 * errors, linestyle="none", capsize=2, label=comparison, **look)
    names = [f"{short(row['storage'])}/{short(row['accumulator'])}" for row in rows.to_dict("records")]
    axes.set_xticks(range(len(names)), names, rotation=60)
    axes.set_xlabel("storage / accumulator")
    axes.set_ylabel("runs whose tokens differ (%)")
    axes.set_ylim(-4, 104)


def short(name: str) -> str:
    """Return a format's short name."""
    return name.replace("bfloat", "bf").replace("float", "f")
