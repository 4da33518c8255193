"""Figures of a run, drawn from its tables, one module per kind of scenario.

matplotlib is imported when something is drawn, for it takes longer to import than most runs to sum up.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWN = ("rounding", "length-profile", "batch-shape", "training-prefix")
"""Kinds of scenario that have a figure."""


def draw(kind: str, tables: dict[str, pd.DataFrame], folder: Path, name: str) -> Sequence[Path]:
    """Draw the figure of a kind of scenario from its tables; return the files, SVG and PNG, or none.

    Raises:
        UsageError: the folder cannot be written.
    """
    from mutkv.report.figures.style import save, styled

    with styled():
        figure = drawing(kind)(tables)
        return [] if figure is None else save(figure, folder, name)


def drawing(kind: str) -> "Callable[[dict[str, pd.DataFrame]], Figure | None]":
    """Return the function that draws a kind of scenario; it gives None where the tables hold nothing to draw."""
    from mutkv.report.figures.batch_shape import batch_shape_figure
    from mutkv.report.figures.length_profile import length_profile_figure
    from mutkv.report.figures.rounding import rounding_figure
    from mutkv.report.figures.training_prefix import training_prefix_figure

    figures = (rounding_figure, length_profile_figure, batch_shape_figure, training_prefix_figure)
    return dict(zip(DRAWN, figures, strict=True))[kind]
