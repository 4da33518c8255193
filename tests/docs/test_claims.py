"""What results/README.md says of the studies is what the committed files of results/reference/ hold."""

import csv
import io

import pytest

from .pages import ROOT, tables, text_of


def rows(name, **wanted):
    """Return the rows of a reference table in which these columns have these values."""
    found = csv.DictReader(io.StringIO(text_of(f"results/reference/{name}.csv")))
    return [row for row in found if all(row[column] == value for column, value in wanted.items())]


def claim(start):
    """Return our figure and the verdict of the claim that begins like this."""
    [row] = [row for row in tables("results/README.md") if row[0].startswith(start)]
    return row[3], row[5]


def test_every_claim_has_six_cells_and_a_command_that_exists():
    claims = [row for row in tables("results/README.md") if row[1] in ("article", "handbook", "chapter")]
    assert len(claims) > 20
    for row in claims:
        assert len(row) == 6
        assert row[4].startswith("`mutkv ")
        assert row[5].startswith(("holds", "does not hold"))


def test_the_orders_agree_at_as_many_positions_as_the_page_says():
    ours, _ = claim("Stored in bfloat16 with a float64 accumulator")
    for weights in ("random", "near-tied"):
        [row] = rows("rounding", weights=weights, storage="bfloat16", accumulator="float64")
        assert (float(row["equal %"]), row["positions"]) == (100.0, "4160")
        [row] = rows("rounding", weights=weights, storage="bfloat16", accumulator="float32")
        assert f"{float(row['equal %']):.1f} %" in ours
    assert "100 % of 4,160 positions" in ours


def test_the_flipped_runs_are_those_of_the_reference():
    ours, _ = claim("With a bfloat16 accumulator, tokens flip")
    for weights, text in (
        ("random", "{} of 24 and {} of 24; {} of 320 and {} of 320"),
        ("near-tied", "{} and {} of 24; {} and {} of 320"),
    ):
        shown = rows("rounding-runs", weights=weights, storage="bfloat16", accumulator="bfloat16")
        names = ("cached, two orders", "no cache, two orders")
        assert text.format(*(row[name].split(" of ")[0] for row in shown for name in names)) in ours
    assert {row["cached, one order"] for row in rows("rounding-runs", seeds="first 3")} == {"0 of 24"}


def test_causality_is_exact_with_the_mask_and_fails_from_the_second_layer_without():
    ours, _ = claim("Without the mask")
    columns = [f"{what}: {stream}" for what in ("append", "cache") for stream in ("residual", "keys", "values")]
    assert {row[column] for row in rows("causality", mutant="clean") for column in columns} == {"0.0"}
    first, second, third = rows("causality", mutant="unmasked")
    assert {first[column] for column in columns[1:]} == {"0.0"}
    assert f"({float(first['append: residual']):.3g})" in ours
    for row, layer in ((second, 2), (third, 3)):
        worst = max(float(row[column]) for column in columns[3:])
        assert f"{worst:.3g} in layer {layer}" in ours
        assert min(float(row[column]) for column in columns) > 0


def test_the_first_infected_layer_is_the_last_for_prerot_and_the_first_for_all_others():
    for row in rows("causality-infection"):
        assert row["first infected layer"] == {"prerot": "3", "clean": "none"}.get(row["mutant"], "1")


def test_the_gradients_error_is_the_largest_of_the_reference():
    ours, _ = claim("The gradient agrees")
    worst = max(float(row["largest error"]) for row in rows("gradients"))
    assert ours.startswith(f"at most {worst:.1e} over 15 to 28 tensors")
    counts = [int(row["tensors"]) for row in rows("gradients")]
    assert (min(counts), max(counts)) == (15, 28)


def test_the_cosine_and_the_losses_are_those_of_the_reference():
    ours, _ = claim("A cached prefix changes the gradient")
    [row] = rows("training-prefix", prompt_length="6")
    mean, low, high = (float(row[f"cosine {name}"]) for name in ("mean", "min", "max"))
    assert ours.startswith(f"{mean:.3f} [{low:.3f}, {high:.3f}] over 8 seeds")
    ours, _ = claim("Training over a cached prefix ends")
    for way, shown in (("constant", "{:.2f} [{:.2f}, {:.2f}]"), ("through", "{:.3f} [{:.3f}, {:.3f}]")):
        [row] = rows("training-prefix-losses", prompt_length="6", way=way)
        assert shown.format(*(float(row[name]) for name in ("mean", "min", "max"))) in ours
        [late] = rows("training-prefix-curves", prompt_length="6", way=way, **{"training step": "600"})
        assert (f"{float(late['mean']):.2f}" if way == "constant" else f"{float(late['mean']):.3f}") in ours


@pytest.mark.parametrize("way", ["constant", "through"])
def test_constants_lose_in_every_seed_from_a_prefix_of_six_on(way):
    for row in rows("training-prefix-losses"):
        if int(row["prompt_length"]) >= 6 and row["way"] == way:
            assert float(row["min"]) > 0.5 if way == "constant" else float(row["max"]) < 0.2


def test_the_length_profile_is_the_reference_written_out():
    shown = [row for row in tables("results/README.md") if len(row) == 8 and row[1].startswith("`")]
    recorded = rows("length-profile-first-flip")
    assert len(shown) == len(recorded) == 24
    for row, found in zip(shown, recorded, strict=True):
        assert row[0] == f"{found['weights']}, {float(found['sharpness']):g}"
        assert row[1] == f"`{found['mutant']}`"
        assert row[2:5] == [
            found[name] or "none" for name in ("some seed first at", "every seed first at", "no seed at")
        ]
        sizes = [row[5], row[6].split(" (")[0], row[7]]
        names = ("|Δ| at shortest", "largest |Δ|", "|Δ| at longest")
        assert [float(size) for size in sizes] == pytest.approx([float(found[name]) for name in names], rel=0.05)
        assert row[6].endswith(f"({found['at length']})")


def test_the_probes_are_as_many_as_the_page_says():
    ours, _ = claim("A two-layer random model")
    rules = ("|Δ| > 0.01", "argmax differs")
    tolerant, strict = (rows("length-profile-probes", weights="random", rule=rule) for rule in rules)
    assert [(row["prompt_length"], row["step"], row["catches"]) for row in tolerant] == [("8", "2", "64")]
    assert len(strict) == 5
    assert "one probe (8 tokens, step 2" in ours
    assert "five probes (1 to 32 tokens, two sharpnesses)" in ours
    lengths = sorted(int(row["prompt_length"]) for row in strict)
    assert (lengths[0], lengths[-1]) == (1, 32)


def test_a_tolerance_of_1e_6_flags_clean_requests_in_float32_and_bfloat16_alone():
    ours, _ = claim("A test with atol 1e-6")
    shares = {
        storage: [float(row["requests over 1e-6 %"]) for row in rows("batch-shape", storage=storage)]
        for storage in ("float64", "float32", "bfloat16")
    }
    assert set(shares["float64"]) == {0.0}
    assert set(shares["bfloat16"]) == {100.0}
    assert f"{min(shares['float32']):.0f} to {max(shares['float32']):.0f} %" in ours


def test_every_figure_of_the_page_is_committed():
    for name in ("rounding", "length-profile", "batch-shape", "training-prefix"):
        assert f"](reference/{name}.svg)" in text_of("results/README.md")
        assert (ROOT / f"results/reference/{name}.svg").stat().st_size > 10_000
