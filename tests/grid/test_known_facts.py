"""What the sources and the prototype know about the eight mutants, as exact values on the shipped grids."""

import pytest

import mutkv
from mutkv.grid.scenario import find_scenario

from .small_grids import EIGHT, plan_of, run_plan, scenario_of

LATE = ("freeze", "posfrozen")
AT_ONCE = ("posoff", "poszero", "stale", "tril", "prerot")
WINDOW = 9


@pytest.fixture(scope="module", params=["detectors", "detectors-learned"])
def results(request, tmp_path_factory):
    return run_plan(plan_of(find_scenario(request.param)), tmp_path_factory.mktemp(request.param))


def joined(results):
    columns = ["case_id", "mutant", "prompt_length", "depth", "seed"]
    return results.observations.merge(results.cases[columns], on="case_id")


def names(results):
    return [name for name in EIGHT if name != "prerot" or results.scenario == "detectors"]


def test_every_case_runs(results):
    counts = results.completeness
    planned = {"detectors": 240, "detectors-learned": 216}[results.scenario]
    assert (counts.planned, counts.done, counts.failed, counts.missing) == (planned, planned, 0, 0)
    assert set(results.cases["mutant"]) == {"clean", "control", *names(results)}


def test_clean_deviates_nowhere_and_nothing_deviates_before_the_first_decoded_token(results):
    rows = joined(results)
    assert (rows.loc[rows["mutant"] == "clean", "max_abs"] == 0.0).all()
    prefill = rows[(rows["step"] == 0) & (rows["mutant"] != "control")]
    assert len(prefill) == 24 * (len(names(results)) + 1)
    assert (prefill["max_abs"] == 0.0).all()


def test_one_step_recall_is_five_of_eight_and_every_step_recall_is_one_without_a_false_alarm(results):
    score = mutkv.score(results, ["every-step", "one-step"])
    every, one = score.detectors
    expected = 5 / 8 if results.scenario == "detectors" else 4 / 7
    assert (every.recall.value, one.recall.value) == (1.0, pytest.approx(expected, abs=1e-12))
    assert 0.55 <= one.recall_cases.value <= 0.65
    assert (every.fpr["clean"].value, every.auc.value, score.unscored_mutants) == (0.0, 1.0, ())


@pytest.mark.parametrize("mutant", LATE)
def test_freeze_and_posfrozen_are_exactly_zero_at_step_one_and_never_after(results, mutant):
    rows = joined(results).query("mutant == @mutant")
    assert (rows.loc[rows["step"] == 1, "max_abs"] == 0.0).all()
    assert (rows.loc[rows["step"] > 1, "max_abs"] > 0.0).all()


def test_evict_is_exactly_zero_until_its_window_is_passed_and_never_after(results):
    rows = joined(results).query("mutant == 'evict'")
    length = rows["prompt_length"] + rows["step"]
    assert (rows.loc[length <= WINDOW, "max_abs"] == 0.0).all()
    assert (rows.loc[length > WINDOW, "max_abs"] > 0.0).all()


def test_the_other_five_deviate_at_step_one_in_every_case(results):
    rows = joined(results).query("step == 1 and mutant in @AT_ONCE")
    assert len(rows) == 24 * len(set(AT_ONCE) & set(names(results)))
    assert (rows["max_abs"] > 1e-3).all()


def test_one_step_recall_is_five_of_eight_with_rope_and_four_of_seven_with_learned_positions(results):
    rows = joined(results)
    seen = set(rows.loc[(rows["step"] == 1) & (rows["max_abs"] > 0) & (rows["mutant"] != "control"), "mutant"])
    assert (len(seen), len(names(results))) == {"detectors": (5, 8), "detectors-learned": (4, 7)}[results.scenario]


def test_every_mutant_is_observable_reached_and_infecting_in_every_case(results):
    faulty = results.cases[results.cases["mutant"].isin(EIGHT)]
    assert faulty[["observable", "reached", "infected"]].astype(bool).all(axis=None)
    assert (faulty["kind"] == "faulty").all()
    assert (faulty["path"] == "cached").all()
    assert (faulty["outcome"] == "ok").all()


def test_first_observable_step_follows_from_the_mutants_mechanism(results):
    for row in results.cases[results.cases["mutant"].isin(EIGHT)].itertuples():
        expected = {"evict": WINDOW + 1 - row.prompt_length}.get(row.mutant, 2 if row.mutant in LATE else 1)
        assert (row.first_observable_request, row.first_observable_step) == (0, expected)
        assert row.first_infected_layer == (row.depth if row.mutant == "prerot" else 1)


def test_clean_and_control_are_benign_and_never_labelled(results):
    benign = results.cases[results.cases["mutant"].isin(["clean", "control"])]
    assert not benign[["observable", "output_changed"]].astype(bool).any(axis=None)
    assert (benign["kind"] == benign["mutant"]).all()
    unknown = ["mutant_class", "origin", "path", "equivalent", "first_observable_step", "reached", "infected"]
    assert benign[unknown].isna().all(axis=None)
    control = joined(results).query("mutant == 'control'")["max_abs"]
    assert 0.0 < control.max() < 1e-12


def test_floors_and_exactness_columns_are_those_of_float64(results):
    cases = results.cases
    assert (cases["floor"] == 1e-9).all()
    exact = cases[["kv_max_abs", "attended_max_abs"]]
    assert (exact[cases["mutant"] == "clean"] == 0.0).all(axis=None)
    assert exact[cases["mutant"] != "clean"].isna().all(axis=None)


def test_prerot_behind_a_single_token_is_exactly_zero_at_step_one_and_not_after(tmp_path):
    axes = "seed = [0, 1, 2]\ndepth = [1, 2]\nprompt_length = 1\nsteps = 5"
    rows = joined(run_plan(plan_of(scenario_of(tmp_path, axes, ["prerot"])), tmp_path / "out"))
    rows = rows[rows["mutant"] == "prerot"]
    # Where all tokens so far are one and the same, so are all values, and no attention weight can matter.
    varied = rows.groupby("case_id")["forced_token"].transform(lambda tokens: (~tokens.duplicated()).cumsum()) > 1
    assert (rows.loc[rows["step"] <= 1, "max_abs"] == 0.0).all()
    assert (rows["step"] > 1)[varied].sum() >= 20
    assert (rows.loc[(rows["step"] > 1) & varied, "max_abs"] > 1e-9).all()


def test_an_empty_prompt_is_a_prompt_of_one_token_renumbered_by_one(tmp_path):
    axes = "seed = [0, 1]\ndepth = 2\nvocab = 8\nbatch = 2\nprompt_length = {}\nsteps = {}"
    frames = []
    for prompt, steps in ((0, 6), (1, 5)):
        folder = tmp_path / str(prompt)
        folder.mkdir()
        results = run_plan(plan_of(scenario_of(folder, axes.format(prompt, steps))), folder / "out")
        cases = results.cases[["case_id", "mutant", "seed", "first_observable_step", "first_changed_step"]]
        rows = cases.merge(results.observations, on="case_id").drop(columns="case_id")
        frames.append(rows.sort_values(["mutant", "seed", "row", "step"]).reset_index(drop=True))
    empty, single = frames
    assert empty["step"].min() == 1
    for column in ("step", "first_observable_step", "first_changed_step"):
        single[column] += 1
    assert len(empty) == 2 * 2 * 6 * 10
    assert empty.equals(single)


@pytest.mark.slow
def test_stale_moves_logits_and_never_a_token_of_the_trained_learned_models(tmp_path):
    cases = run_plan(plan_of(find_scenario("detectors-trained")), tmp_path).cases
    stale = cases[(cases["mutant"] == "stale") & (cases["positions"] == "learned")]
    assert (cases["outcome"] == "ok").all()
    assert len(stale) == 12
    assert stale["observable"].all()
    assert not stale["output_changed"].any()
