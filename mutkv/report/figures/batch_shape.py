"""The figure of ``batch-shape``: how far a right engine deviates in a batch, and which checks call that a bug."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mutkv.report.figures.style import COLOURS, line_style, panels, plain_ticks, shared_legend

FORMATS = ("float64", "float32", "bfloat16")
TOLERANCES = (1e-6, 1e-5, 1e-2)


def batch_shape_figure(tables: dict[str, pd.DataFrame]) -> Figure:
    """Draw the deviation of clean requests by batch, and per format the detectors' false alarms beside their recall."""
    figure, axes = panels(11, 3.8, 4, width_ratios=[1.5, 1, 1, 1])
    draw_deviation(axes[0], tables["deviation"])
    for storage, panel in zip(FORMATS, axes[1:], strict=True):
        draw_detectors(panel, *(rows[rows["storage"] == storage] for rows in (tables["detectors"], tables["rates"])))
        panel.set_title(f"native {storage}")
    axes[1].set_ylabel("detector")
    for panel in axes[2:]:
        panel.set_yticklabels([])
    shared_legend(figure, axes[1:2], 3)
    return figure


def draw_deviation(axes: Axes, deviation: pd.DataFrame) -> None:
    """Draw the largest deviation of a clean request from itself alone, and the tolerances that checks use."""
    for index, storage in enumerate(FORMATS):
        rows = deviation[deviation["storage"] == storage]
        axes.plot(rows["batch"], rows["max|Δ|"], label=storage, **line_style(index))
    for tolerance in TOLERANCES:
        axes.axhline(tolerance, color="black", linewidth=0.7, linestyle=":")
        axes.annotate(f"tolerance {tolerance:g}", (16, tolerance), fontsize=7, va="top", ha="right")
    axes.set_yscale("log")
    axes.set_xscale("log", base=2)
    plain_ticks(axes, sorted(deviation["batch"].unique()))
    axes.set_xlabel("batch (requests)")
    axes.set_ylabel("max|Δ| from the request's own full path (logits)")
    axes.set_title("a correct engine, native kernels")
    axes.legend(loc="center", fontsize=8)


def draw_detectors(axes: Axes, detectors: pd.DataFrame, rates: pd.DataFrame) -> None:
    """Draw each detector's recall, and its false alarms in the smallest and in the largest batch, with intervals."""
    names = list(detectors["detector"])
    batches = sorted(rates["batch"].unique())
    shown = [("recall (mean over mutants; 95 % intervals)", detectors, "recall")]
    for size in dict.fromkeys((batches[0], batches[-1])):
        shown.append((f"clean batches of {size} flagged", rates[rates["batch"] == size], "FPR"))
    for index, (label, rows, column) in enumerate(shown):
        rows = rows.dropna(subset=column)
        value = rows[column].astype(float)
        low, high = (rows[bound].astype(float).fillna(value) for bound in ("low", "high"))
        places = [names.index(name) + (index - 1) * 0.25 for name in rows["detector"]]
        errors = [(value - low).clip(0), (high - value).clip(0)]
        face = "black" if index == 0 else "white"
        look: dict[str, Any] = {"marker": "os^"[index], "color": COLOURS[index], "markerfacecolor": face}
        axes.errorbar(value, places, xerr=errors, label=label, linestyle="none", capsize=2, **look)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(-0.05, 1.05)
    axes.invert_yaxis()
    axes.set_xlabel("share flagged (0 to 1)")
