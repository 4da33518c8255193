"""Figures of a run, drawn from its tables, one module per kind of scenario.

matplotlib is imported when something is drawn, for it takes longer to import than most runs to sum up.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from mutkv.errors import UsageError, one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWN = ("rounding", "length-profile", "batch-shape", "training-prefix")
"""Kinds of scenario that have a figure."""


def draw(kind: str, tables: dict[str, pd.DataFrame], folder: Path, name: str) -> Sequence[Path]:
    """Draw the figure of a kind of scenario from its tables; return the files, SVG and PNG.

    None are written where the kind has no figure, or the tables hold nothing to draw.

    Raises:
        UsageError: the folder cannot be written, or matplotlib does not start.
    """
    if kind not in DRAWN or any(table.empty for table in tables.values()):
        return []
    try:
        from mutkv.report.figures.style import save, styled
    except (ImportError, ValueError) as error:  # a setting of the user that matplotlib refuses, MPLBACKEND above all
        raise UsageError(f"matplotlib cannot be used ({one_line(error)}): mend its settings") from error
    with styled():
        figure = drawings()[kind](tables)
        return [] if figure is None else save(figure, folder, name)


def drawings() -> "dict[str, Callable[[dict[str, pd.DataFrame]], Figure | None]]":
    """Return the functions that draw; they give None where there is nothing to draw."""
    from mutkv.report.figures.batch_shape import batch_shape_figure
    from mutkv.report.figures.length_profile import length_profile_figure
    from mutkv.report.figures.rounding import rounding_figure
    from mutkv.report.figures.training_prefix import training_prefix_figure

    return {
        "rounding": rounding_figure,
        "length-profile": length_profile_figure,
        "batch-shape": batch_shape_figure,
        "training-prefix": training_prefix_figure,
    }
