"""The figure of ``length-profile``: how far each fault deviates at a prefix length, and how often it flips a token."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from mutkv.report.figures.style import line_style, panels, plain_ticks, shared_legend
from mutkv.report.tables.length_profile import MODEL, TOLERANCE

KEYS = [*MODEL, "prompt_length", "seeds", "unseen"]


def length_profile_figure(tables: dict[str, pd.DataFrame]) -> Figure | None:
    """Draw one column per model; above the median deviation, below the share of seeds whose argmax flips.

    A prompt of 0 tokens has no place on a logarithmic axis; it is in the tables alone.
    """
    flips, deviation = (tables[name].query("prompt_length > 0") for name in ("flips", "deviation"))
    mutants = [name for name in flips.columns if name not in KEYS]
    if deviation.empty:
        return None
    models = list(deviation.groupby(MODEL, sort=False))
    figure, axes = panels(11, 6.2, len(models), 2, sharex="col", sharey="row")
    for column, (key, lengths) in enumerate(models):
        upper, lower = axes[column], axes[column + len(models)]
        share = flips[(flips[MODEL] == list(key)).all(axis=1)]
        for index, mutant in enumerate(mutants):
            upper.plot(lengths["prompt_length"], lengths[mutant], label=mutant, **line_style(index))
            known = share.dropna(subset=mutant).astype({mutant: float})
            lower.plot(known["prompt_length"], 100 * known[mutant] / known["seeds"], **line_style(index))
        upper.axhline(TOLERANCE, color="black", linewidth=0.7)
        upper.set_yscale("log")
        lower.set_xscale("log", base=2)
        plain_ticks(lower, lengths["prompt_length"].tolist())
        upper.set_title(f"{key[0]} weights, sharpness {key[1]:g}")
        lower.tick_params(axis="x", rotation=90)
        lower.set_xlabel("prompt length (tokens)")
    axes[0].set_ylabel("median over seeds of max|Δ| (logits)")
    place: dict[str, Any] = {
        "xytext": (-3, -2),
        "textcoords": "offset points",
        "ha": "right",
        "va": "top",
        "fontsize": 7,
    }
    axes[len(models) - 1].annotate(
        f"tolerance {TOLERANCE:g}", (1, TOLERANCE), xycoords=("axes fraction", "data"), **place
    )
    axes[len(models)].set_ylabel("seeds whose argmax flips (%)")
    shared_legend(figure, axes[:1], len(mutants))
    return figure
