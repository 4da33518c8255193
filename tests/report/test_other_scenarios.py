"""Figures of a user's own scenario of a shipped kind: only what its tables hold is drawn."""

import pandas as pd
import pytest

from mutkv.report.figures import draw

from .test_figures import length_profile, panels, rounding, training_prefix


def test_rounding_has_one_panel_of_flips_per_kind_of_weights():
    tables = {name: table[table["weights"] == "near-tied"] for name, table in rounding().items()}
    titles = [axes.get_title() for axes in panels("rounding", tables)]
    assert len(titles) == 2
    assert all("near-tied weights" in title for title in titles)


def test_a_length_profile_of_no_length_but_zero_has_no_figure(tmp_path):
    tables = {name: table.assign(prompt_length=0) for name, table in length_profile().items()}
    assert draw("length-profile", tables, tmp_path, "name") == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("steps", "stars"), [([10, 6, 2], 2), ([10, 6, 3], 0), ([14, 10, 6], 0)])
def test_the_sources_figures_stand_beside_runs_of_as_many_tokens_as_the_source_had(steps, stars):
    tables = training_prefix()
    tables["training"] = tables["training"].assign(steps=steps)
    drawn = [line for axes in panels("training-prefix", tables) for line in axes.lines if line.get_marker() == "*"]
    assert len(drawn) == stars


def test_the_curves_are_those_of_the_prefix_that_is_nearest_to_half_of_the_tokens():
    tables = training_prefix()
    tables["training"] = tables["training"].query("prompt_length != 6")
    tables["curves"] = pd.concat([tables["curves"], tables["curves"].query("prompt_length == 2").assign(mean=0.125)])
    curves = panels("training-prefix", tables)[2]
    assert curves.get_title() == "while training, prefix of 2 tokens"
    assert 0.125 in curves.lines[0].get_ydata()
