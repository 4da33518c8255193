"""Frames as a table for people, CSV or JSON: one look for every command."""

import json
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mutkv.streams import write_output

WIDE, UNLIMITED = 240, 10_000


def figure(value: Any) -> str:
    """Return a value as a table shows it: an exact zero as 0.0, undefined as n/a, three significant digits else."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "n/a"
    if not isinstance(value, float):
        return str(value)
    if value == 0:
        return "0.0"
    if float(value).is_integer() and abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.3g}" if abs(value) < 1e-3 or abs(value) >= 1e3 else f"{value:.3f}"


def cell(column: str, value: Any) -> str:
    """Return a value as a table shows it in this column: percentages with one decimal."""
    is_share = "%" in column and isinstance(value, float) and value != 0 and not math.isnan(value)
    return f"{value:.1f}" if is_share else figure(value)


def frame_table(frame: pd.DataFrame) -> Table:
    """Return a rich table of a frame, numbers to the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in frame.columns:
        is_number = pd.api.types.is_numeric_dtype(frame[name])
        table.add_column(Text(str(name)), justify="right" if is_number else "left", no_wrap=True)
    for row in frame.itertuples(index=False):
        table.add_row(*(Text(cell(str(name), value)) for name, value in zip(frame, row, strict=True)))
    return table


def print_frame(
    frame: pd.DataFrame, style: str, title: str | None = None, heading: Mapping[str, object] | None = None
) -> None:
    """Print a frame to stdout as ``table`` (below a title), ``csv`` or ``json`` (its rows beside a heading, if any)."""
    if style == "csv":
        print_text(frame.to_csv(index=False))
    elif style == "json":
        rows = json_rows(frame)
        print_json({**heading, "rows": rows} if heading else rows)
    else:
        print_text(f"{title}\n" if title else "")
        print_renderable(frame_table(frame))


def print_tables(tables: Mapping[str, pd.DataFrame], style: str, title: str, heading: Mapping[str, object]) -> None:
    """Print several frames: as tables one below the other, as JSON all in one document, as CSV the first alone."""
    (name, first), *others = tables.items()
    if style == "json":
        rest = {"tables": {other: json_rows(frame) for other, frame in others}} if others else {}
        print_json({**heading, "table": name, "rows": json_rows(first), **rest})
        return
    print_frame(first, style, f"{title}\n\n{name}:" if others else title)
    if style == "table":
        for other, frame in others:
            print_frame(frame, style, f"{other}:")


def json_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a frame as JSON data; undefined figures are None."""
    known = frame.astype(object).where(frame.notna(), None)  # pandas' own to_json would round to 15 decimals
    return [{str(name): value for name, value in row.items()} for row in known.to_dict(orient="records")]


def print_renderable(renderable: Any, width: int | None = WIDE) -> None:
    """Print a rich object to stdout without trailing blanks.

    A table is as wide as it needs to be, whatever the terminal: a broken line is better than a broken word. Text
    takes the terminal's width (``width`` None).
    """
    if width is not None:
        width = max(width, Console(width=UNLIMITED, height=1).measure(renderable).maximum)
    console = Console(highlight=False, width=width, height=None if width is None else 1)  # a dumb terminal says 80
    with console.capture() as captured:
        console.print(renderable)
    print_text("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")


def room() -> int:
    """Return how many characters a line may have: the terminal's width, or plenty where there is none."""
    console = Console()
    return console.width if console.is_terminal else WIDE


def print_json(document: Any) -> None:
    """Print JSON data to stdout; undefined figures are null."""
    print_text(json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def print_text(text: str) -> None:
    """Print text to stdout as it is."""
    write_output(text)
