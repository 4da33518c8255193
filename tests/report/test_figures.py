"""Figures of small tables made by hand: files, bytes, labels, looks, and that what is drawn is the tables' data."""

import re
import subprocess
import sys
from functools import cache
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.container import BarContainer
from matplotlib.image import imread

from mutkv.errors import UsageError
from mutkv.report.figures import DRAWN, draw, drawings
from mutkv.report.figures.style import styled

FORMATS = ("float64", "float32", "bfloat16")
WEIGHTS = ("random", "near-tied")
TWO_ORDERS, CONTROL = "cached, two orders", "no cache, two orders"
MUTANTS = ("a", "b", "c", "d", "e", "f", "g", "h")
PAIRS = [(weights, storage, accumulator) for weights in WEIGHTS for storage in FORMATS for accumulator in FORMATS]


def frame(columns, rows):
    return pd.DataFrame(rows, columns=columns.split(", "))


def rounding():
    counts = [(what, runs) for what in ("cached, one order", TWO_ORDERS, CONTROL) for runs in (3, 40)]
    shares = {pair: i / 40 for i, pair in enumerate(PAIRS)}
    flips = [
        (*pair, what, runs, runs * share, share * runs / 80, share + 0.2 * (what == CONTROL))
        for pair, share in shares.items()
        for what, runs in counts
    ]
    agreement = [(*pair, 100 * share) for pair, share in shares.items()]
    return {
        "agreement": frame("weights, storage, accumulator, equal %", agreement),
        "flips": frame("weights, storage, accumulator, comparison, runs, flipped, low, high", flips),
    }


def length_profile(mutants=MUTANTS):
    keys = [(*model, length) for model in (("random", 1.0), ("random", 2.0)) for length in (0, 1, 4, 16)]
    sizes = [(*key, *(10.0 ** (i - j) for j in range(len(mutants)))) for i, key in enumerate(keys)]
    flips = [(*key, 8, *((i + j) % 9 for j in range(len(mutants))), "none") for i, key in enumerate(keys)]
    names = ", ".join(mutants)
    return {
        "flips": frame(f"weights, sharpness, prompt_length, seeds, {names}, unseen", flips),
        "deviation": frame(f"weights, sharpness, prompt_length, {names}", sizes),
    }


def batch_shape():
    batches = [(s, batch, 10.0 ** (4 * i - 14) * batch) for i, s in enumerate(FORMATS) for batch in (1, 2, 16)]
    names = (("one-step", 0.5), ("silent", None), ("text-8", 0.75))
    detectors = [
        (s, name, recall, recall and recall / 2, recall and 1.0 - i / 8)
        for i, s in enumerate(FORMATS)
        for name, recall in names
    ]
    rates = [
        (s, batch, name, (j + 1) / 5 + batch / 200, (j + 1) / 6, (j + 1) / 3)
        for s in FORMATS
        for batch in (1, 2, 16)
        for j, (name, _) in enumerate(names)
    ]
    return {
        "deviation": frame("storage, batch, max|Δ|", batches),
        "detectors": frame("storage, detector, recall, low, high", detectors),
        "rates": frame("storage, batch, detector, FPR, low, high", rates),
    }


def training_prefix():
    lengths = [("clean", length, 12 - length) for length in (2, 6, 10)]
    ways = [("clean", length, way) for length in (2, 6, 10) for way in ("through", "constant", "frozen", "untrained")]
    curves = [("clean", n, way, step) for n in (2, 6) for way in ("through", "constant") for step in (50, 100, 150)]
    tables = {
        "training": ("mutant, prompt_length, steps, cosine mean, cosine min, cosine max", lengths),
        "losses": ("mutant, prompt_length, way, mean, min, max", ways),
        "curves": ("mutant, prompt_length, way, training step, mean, min, max", curves),
    }
    return {
        name: frame(columns, [(*key, 0.5 + i / 90, 0.4 + i / 99, 0.7 + i / 80) for i, key in enumerate(keys)])
        for name, (columns, keys) in tables.items()
    }


TABLES = dict(zip(DRAWN, (rounding, length_profile, batch_shape, training_prefix), strict=True))
every_kind = pytest.mark.parametrize("kind", DRAWN)


@cache
def axes_of(kind):
    """Return the panels of a figure of the tables made by hand."""
    return panels(kind, TABLES[kind]())


def panels(kind, tables):
    """Return the panels of a figure, laid out as when it is written."""
    with styled():
        figure = drawings()[kind](tables)
        figure.draw_without_rendering()
    return figure.axes


@pytest.fixture(scope="module", params=DRAWN)
def drawn(request, tmp_path_factory):
    """Return a kind and the files of its figure, drawn twice into new folders."""
    folders = (tmp_path_factory.mktemp(request.param) / name for name in ("one", "two"))
    return request.param, *(draw(request.param, TABLES[request.param](), folder, "name") for folder in folders)


def test_a_figure_is_a_picture_and_a_drawing_of_it(drawn):
    kind, files, _ = drawn
    assert [file.name for file in files] == ["name.svg", "name.png"]
    assert sorted(files) == sorted(files[0].parent.iterdir())
    root = ElementTree.parse(files[0]).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    written = {text for each in root.iter("{http://www.w3.org/2000/svg}text") for text in each.itertext()}
    assert {axes.get_xlabel() for axes in axes_of(kind)} - {""} <= written
    picture = imread(files[1])
    assert min(picture.shape[:2]) > 300
    assert 0.02 < (picture[..., :3].mean(axis=2) < 0.9).mean() < 0.5  # a picture has more paper than ink


def test_a_users_settings_of_matplotlib_change_nothing(tmp_path, drawn):
    kind, files, _ = drawn
    with mpl.rc_context({"font.family": "serif", "lines.linewidth": 5, "text.usetex": True}):
        again = draw(kind, TABLES[kind](), tmp_path, "name")
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in again]


def test_the_same_tables_give_the_same_bytes_without_a_date(drawn):
    _, first, second = drawn
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]
    assert not re.search(r"date>|20\d\d-\d\d", first[0].read_text())
    assert not re.search(rb"tIME|tEXt|iTXt|zTXt", first[1].read_bytes())


def shows_text(axis):
    return any(label.get_visible() and label.get_text() for label in axis.get_ticklabels())


@every_kind
def test_every_axis_that_has_numbers_or_names_has_a_label(kind):
    for axes in axes_of(kind):
        for axis in (axes.xaxis, axes.yaxis):
            assert bool(axis.get_label_text()) == shows_text(axis), axes.get_title()


WITHOUT_UNIT = {"accumulator", "storage / accumulator", "training step", "detector"}


@every_kind
def test_labels_name_a_unit_where_there_is_one(kind):
    labels = {axis.get_label_text() for axes in axes_of(kind) for axis in (axes.xaxis, axes.yaxis)}
    assert len(labels - {""}) >= 3
    for label in labels - {""} - WITHOUT_UNIT:
        assert re.search(r"\([^()]+\)$|^share of \w|^cosine of \w", label), label


NO_CURVE = ("_", "|", "None")
"""Markers of the caps of an interval and of guide lines."""


def looks(axes):
    """Return marker and dashes of each curve of a panel, and each hatch of its bars; guides and caps are no curves."""
    curves = [line for line in axes.lines if len(line.get_xdata()) > 1 and line.get_marker() not in NO_CURVE]
    bars = [container.patches[0] for container in axes.containers if isinstance(container, BarContainer)]
    return [f"{line.get_marker()} {line._unscaled_dash_pattern}" for line in curves] + [bar.get_hatch() for bar in bars]


@every_kind
def test_without_colour_the_lines_and_bars_of_a_panel_differ_by_marker_dashes_or_hatches(kind):
    for axes in axes_of(kind):
        assert len(set(looks(axes))) == len(looks(axes)) >= 1


def test_of_nine_mutants_no_two_lines_look_alike():
    for axes in panels("length-profile", length_profile((*MUTANTS, "mine"))):
        assert len(set(looks(axes))) == len(looks(axes)) == 9


def draws(line, table, columns, **wanted):
    """Assert that a line has the points of the rows that have these values."""
    rows = table[(table[list(wanted)] == list(wanted.values())).all(axis=1)]
    assert len(rows) > 1
    np.testing.assert_allclose(np.array(line.get_data(), float).T, rows[columns].astype(float), rtol=1e-12)


def ends(bars):
    """Return low and high ends of the intervals of error bars, along the axis on which they differ."""
    segments = np.array(bars.lines[2][0].get_segments())  # [bars, ends, xy]
    return segments[..., int(np.ptp(segments, axis=1).max(axis=0).argmax())]


def test_a_folder_that_cannot_be_written_is_one_line_for_the_user_and_the_style_is_restored(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"name\.svg: cannot be written \(.+\): choose another --out"):
        draw("training-prefix", training_prefix(), tmp_path / "file" / "figures", "name")
    assert (mpl.rcParams["svg.hashsalt"], mpl.rcParams["axes.grid"]) == (None, False)


def test_neither_the_command_line_nor_the_list_of_figures_loads_matplotlib():
    program = "import sys, mutkv.report.figures, mutkv.cli.grid, mutkv.report.summary; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.split()
    assert ("mutkv.report.summary" in loaded, "matplotlib" in loaded) == (True, False)
