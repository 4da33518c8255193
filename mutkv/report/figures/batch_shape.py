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
        draw_detectors(panel, tables["detectors"].query("storage == @storage"))
        panel.set_title(f"native {storage}")
    axes[1].set_ylabel("detector")
    for panel in axes[2:]:
        panel.set_yticklabels([])
    shared_legend(figure, axes[1:2], 2)
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
    axes.set_ylabel("max|Δ| to the full path, alone (logits)")
    axes.set_title("a right engine")
    axes.legend(loc="center", fontsize=8)


def draw_detectors(axes: Axes, detectors: pd.DataFrame) -> None:
    """Draw each detector's false-positive rate and recall with their intervals."""
    for name, marker, face, colour, shift in (
        ("FPR", "s", "white", COLOURS[2], 0.15),
        ("recall", "o", "black", "black", -0.15),
    ):
        known = detectors[name].notna()
        places = [place + shift for place, ok in zip(range(len(detectors)), known, strict=True) if ok]
        rows = detectors[known]
        errors = [(rows[name] - rows[f"{name} low"]).clip(0), (rows[f"{name} high"] - rows[name]).clip(0)]
        look: dict[str, Any] = {
            "marker": marker,
            "color": colour,
            "markerfacecolor": face,
            "linestyle": "none",
            "capsize": 2,
        }
        axes.errorbar(rows[name], places, xerr=errors, label=LABELS[name], **look)
    axes.set_yticks(range(len(detectors)), detectors["detector"])
    axes.set_xlim(-0.05, 1.05)
    axes.invert_yaxis()
    axes.set_xlabel("share of cases")


LABELS = {"FPR": "clean cases flagged (false alarms)", "recall": "bugs flagged (recall)"}
