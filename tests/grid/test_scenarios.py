"""Scenario files: what ships counts what was promised, and every mistake is one line naming file, key and fix."""

import itertools

import pytest

from mutkv.configuration import Configuration
from mutkv.errors import UsageError
from mutkv.grid.scenario import find_scenario, scenario_files
from mutkv.weights.trained import trained_length

from .small_grids import plan_of, scenario_of


def refusal(folder, text):
    """Return the error of reading and laying out a scenario file, checked to be one line that names the file."""
    path = folder / "wrong.toml"
    path.write_text(text if "[axes]" in text else f'name = "wrong"\nsummary = "wrong"\n[axes]\n{text}\n')
    with pytest.raises(UsageError) as error:
        list(find_scenario(str(path)).configurations())
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("name", "cases"),
    {
        "detectors": 240,
        "detectors-learned": 216,
        "detectors-near-tied": 240,
        "detectors-trained": 228,
        "exactness": 1296,
        "exactness-rope": 1296,
        "handbook": 2 * 30,
        # 8 seeds × 7 prompts and 3 seeds × 2 prompts, at 2 sharpnesses, clean and 5 mutants
        "prefix-sweep": (8 * 7 + 3 * 2) * 2 * 6,
    }.items(),
)
def test_a_shipped_scenario_has_the_promised_number_of_cases(name, cases):
    plan = plan_of(find_scenario(name))
    assert len(plan.cases) == cases
    assert len({case.case_id for case in plan.cases}) == cases
    assert len({case.content_key for case in plan.cases}) == cases


def test_every_shipped_file_is_found_by_the_name_it_gives_itself():
    assert len(scenario_files()) == 14
    assert all(find_scenario(name).name == name for name in scenario_files())


def test_axes_multiply_and_what_is_left_out_has_its_default(tmp_path):
    scenario = scenario_of(tmp_path, "seed = [5, 7]\nheads = [2, 4]\nsteps = [0, 3]\nstorage = 'float32'")
    expected = {
        Configuration(seed=seed, heads=heads, kv_heads=heads, steps=steps, storage="float32", accumulator="float32")
        for seed, heads, steps in itertools.product((5, 7), (2, 4), (0, 3))
    }
    assert set(scenario.configurations()) == expected


def test_a_column_with_an_axis_of_its_own_no_longer_follows_another(tmp_path):
    axes = "heads = 4\nkv_heads = [1, 2]\nstorage = 'bfloat16'\naccumulator = 'float64'\ndecode_order = 'pairwise'"
    found = [
        (c.kv_heads, c.accumulator, c.prefill_order, c.decode_order)
        for c in scenario_of(tmp_path, axes).configurations()
    ]
    assert found == [(1, "float64", "sequential", "pairwise"), (2, "float64", "sequential", "pairwise")]


def test_configurations_that_variants_or_axes_repeat_are_counted_once(tmp_path):
    rest = "[[variants]]\nsteps = [2, 3]\n[[variants]]\nsteps = [3, 4]\n[[variants]]\nsteps = 12"
    scenario = scenario_of(tmp_path, "seed = [1, 0, 1]", rest=rest)
    found = [(c.seed, c.steps) for c in scenario.configurations()]
    assert found == [(1, 2), (1, 3), (0, 2), (0, 3), (1, 4), (0, 4), (1, 12), (0, 12)]
    assert len(plan_of(scenario).cases) == 8 * 10


def test_a_mutant_without_its_feature_is_left_out_where_it_does_not_apply(tmp_path):
    plan = plan_of(scenario_of(tmp_path, "positions = ['learned', 'rope']"))
    assert {case.configuration.positions for case in plan.cases if case.mutant == "prerot"} == {"rope"}
    assert len(plan.cases) == 10 + 9


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ("promptlength = 3", "unknown key 'axes.promptlength': did you mean prompt_length"),
        ("depht = [1]\nsteps = -1", "unknown key 'axes.depht': did you mean depth or weights?"),
        ("seed = []", "'axes.seed' should be a list or table that is not empty, found []"),
        ("prompt_length = [4, -1]", "'axes.prompt_length[1]' should be at least 0, found -1"),
        ("steps = -3", "'axes.steps[0]' should be at least 0, found -3"),
        ("depth = 0", "'axes.depth[0]' should be at least 1, found 0"),
        ("heads = 3\nkv_heads = 2", "axes: kv_heads 2 does not divide heads 3: use a divisor"),
        ("head_dim = 7", "axes: head_dim 7 is odd, and rope rotates pairs: use an even one"),
        ("prompt_length = 0\nsteps = 0", "axes: prompt_length 0 with steps 0 observes nothing: use at least one step"),
        ("workload = 'decoed'", "axes: unknown workload 'decoed': did you mean decode?"),
        ("storage = 'float16'", "'axes.storage[0]' should be 'float64', 'float32' or 'bfloat16', found \"float16\""),
        ("steps = 1.5", "'axes.steps[0]' should be an integer, found 1.5"),
        ("steps = [1", "invalid TOML: "),
    ],
)
def test_a_wrong_axis_is_named_with_its_fix(tmp_path, axes, message):
    assert refusal(tmp_path, axes).startswith(message)


def test_trained_weights_are_refused_beyond_their_structure_and_seeds(tmp_path):
    trained = "weights = 'trained'\ndepth = 2\nkv_heads = 1\n"
    assert "no trained weights with seed 99 for rope positions" in refusal(tmp_path, f"{trained}seed = 99")
    assert "no trained weights with heads 4 for rope positions" in refusal(tmp_path, f"{trained}heads = 4")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('nmae = "x"\n[axes]', "unknown key 'nmae': did you mean name or axes?"),
        ('name = "x"\n[axes]', "missing key 'summary': add it"),
        ('name = "x"\nsummary = ""\n[axes]', "'summary' should be a string that is not empty, found \"\""),
        ('name = "A b"\nsummary = "x"\n[axes]', "'name' is not valid"),
        ('name = "x"\nsummary = "x"\nbenign = ["cleen"]\n[axes]', "'benign[0]' should be 'clean' or 'control'"),
        ('name = "x"\nsummary = "x"\n[axes]\n[[variants]]\nhedas = 2', "unknown key 'variants[0].hedas': did you mean"),
    ],
)
def test_a_wrong_key_at_the_top_is_named_with_its_fix(tmp_path, text, message):
    assert refusal(tmp_path, text).startswith(message)


@pytest.mark.parametrize(("positions", "kv_heads"), [("rope", 1), ("learned", 2)])
def test_trained_weights_are_refused_beyond_the_length_they_were_trained_on(tmp_path, positions, kv_heads):
    axes = f"weights = 'trained'\ndepth = 2\npositions = '{positions}'\nkv_heads = {kv_heads}\nprompt_length = 6\n"
    limit = trained_length(positions)
    assert len(list(scenario_of(tmp_path, f"{axes}steps = {limit - 6}").configurations())) == 1
    message = f"axes: prompt_length 6 + steps {limit - 5} is beyond the {limit} tokens that were trained on: shorten"
    assert refusal(tmp_path, f"{axes}steps = {limit - 5}").startswith(message)


def test_an_unknown_scenario_is_answered_with_the_nearest_names():
    with pytest.raises(UsageError, match=r"^unknown scenario 'detector': did you mean .*detectors"):
        find_scenario("detector")
    with pytest.raises(UsageError, match=r"^unknown scenario 'zzzz': known: batch-shape, "):
        find_scenario("zzzz")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"nowhere\.toml: no such file: check the path"):
        find_scenario(str(tmp_path / "nowhere.toml"))
