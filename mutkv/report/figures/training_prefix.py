"""The figure of ``training-prefix``: what is left of the gradient, and where training ends, by length of the prefix."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mutkv.report.figures.style import line_style, panels
from mutkv.report.tables.training_prefix import WAYS

SOURCE = {"cosine": (6, 0.857), "through": (6, 0.059), "constant": (6, 1.346)}
"""The article's figures: prefix length (of 12 tokens) and value."""


def training_prefix_figure(tables: dict[str, pd.DataFrame]) -> Figure:
    """Draw the gradient's cosine and the held-out losses over the prefix, and the losses while training at one."""
    figure, (cosine, losses, curves) = panels(11, 3.6, 3)
    training = tables["training"].rename(columns=lambda name: name.removeprefix("cosine "))
    band(cosine, training, "prompt_length", 0, "mean and range of seeds")
    cosine.plot(*SOURCE["cosine"], "*", color="black", markersize=11, markerfacecolor="white", label="source")
    cosine.set_ylabel("cosine of the two gradients")
    cosine.set_ylim(0, 1.05)
    cosine.legend(fontsize=8)
    for index, way in enumerate(WAYS):
        band(losses, tables["losses"].query("way == @way"), "prompt_length", index, way)
    for way in ("through", "constant"):
        losses.plot(*SOURCE[way], "*", color="black", markersize=11, markerfacecolor="white")
    losses.set_ylabel("held-out suffix loss (nats per token)")
    losses.set_title("after training (stars: source)")
    losses.legend(fontsize=8)
    for axes in (cosine, losses):
        axes.set_xlabel("prefix (tokens of 12)")
        axes.set_xticks(sorted(tables["training"]["prompt_length"]))
    draw_curves(curves, tables["curves"].query("prompt_length == 6"))
    return figure


def draw_curves(axes: Axes, curves: pd.DataFrame) -> None:
    """Draw the held-out loss of both ways while training."""
    for index, (way, rows) in enumerate(curves.groupby("way", sort=False)):
        band(axes, rows, "step", index, str(way))
    axes.set_yscale("log")
    axes.set_xlabel("training step")
    axes.set_ylabel("held-out suffix loss (nats per token)")
    axes.set_title("prefix of 6 tokens")
    axes.legend(fontsize=8)


def band(axes: Axes, rows: pd.DataFrame, along: str, index: int, label: str) -> None:
    """Draw a mean with the range of seeds behind it."""
    look = line_style(index)
    axes.plot(rows[along], rows["mean"], label=label, **look)
    axes.fill_between(rows[along], rows["min"], rows["max"], color=look["color"], alpha=0.15, linewidth=0)
