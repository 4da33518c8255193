"""The figure of ``training-prefix``: what is left of the gradient, and where training ends, by length of the prefix."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mutkv.report.figures.style import line_style, panels
from mutkv.report.tables.training_prefix import WAYS
from mutkv.studies.training_prefix import BUDGET

SOURCE_PREFIX, SOURCE_TOKENS = 6, 12
SOURCE = {"cosine": 0.857, "through": 0.059, "constant": 1.346}
"""The article's figures, at a prefix of 6 of 12 tokens."""


def training_prefix_figure(tables: dict[str, pd.DataFrame]) -> Figure | None:
    """Draw the gradient's cosine and the held-out losses over the prefix, and the losses while training at one."""
    tables = {name: table[table["mutant"] == "clean"] for name, table in tables.items()}
    training = tables["training"].rename(columns=lambda name: name.removeprefix("cosine "))
    if training.empty:
        return None
    figure, (cosine, losses, curves) = panels(11, 3.6, 3)
    tokens = sorted((training["prompt_length"] + training["steps"]).unique())
    band(cosine, training, "prompt_length", 0, "mean and range of seeds")
    cosine.set_ylabel("cosine of the two gradients")
    cosine.set_ylim(min(0.8, training["min"].min()), 1.01)
    cosine.set_title("at the initial weights")
    for index, way in enumerate(WAYS):
        band(losses, tables["losses"].query("way == @way"), "prompt_length", index, way)
    losses.set_ylabel("held-out suffix loss (nats per token)")
    losses.set_title(f"after {BUDGET} steps; bands: range of seeds")
    if tokens == [SOURCE_TOKENS]:
        mark_source(cosine, ["cosine"])
        mark_source(losses, ["through", "constant"])
    for axes in (cosine, losses):
        axes.set_xlabel(f"prefix (tokens of {' or '.join(map(str, tokens))})")
        axes.set_xticks(sorted(training["prompt_length"]))
        axes.legend(fontsize=8)
    middle = training["prompt_length"].iloc[(training["prompt_length"] - training["steps"]).abs().argmin()]
    draw_curves(curves, tables["curves"].query("prompt_length == @middle"))
    curves.set_title(f"while training, prefix of {middle} tokens")
    curves.axvline(BUDGET, color="black", linewidth=0.7, linestyle=":")
    return figure


def mark_source(axes: Axes, names: list[str]) -> None:
    """Mark the article's figures."""
    places = [SOURCE_PREFIX] * len(names)
    look: dict[str, Any] = {"color": "black", "markersize": 11, "markerfacecolor": "white", "linestyle": "none"}
    axes.plot(places, [SOURCE[name] for name in names], marker="*", label="source", **look)


def draw_curves(axes: Axes, curves: pd.DataFrame) -> None:
    """Draw the held-out loss of both ways while training."""
    for index, (way, rows) in enumerate(curves.groupby("way", sort=False)):
        band(axes, rows, "training step", index, str(way))
    axes.set_yscale("log")
    axes.set_xlabel("training step")
    axes.set_ylabel("held-out suffix loss (nats per token)")
    axes.legend(fontsize=8)


def band(axes: Axes, rows: pd.DataFrame, along: str, index: int, label: str) -> None:
    """Draw a mean with the range of seeds behind it."""
    look = line_style(index)
    axes.plot(rows[along], rows["mean"], label=label, **look)
    axes.fill_between(rows[along], rows["min"], rows["max"], color=look["color"], alpha=0.15, linewidth=0)
