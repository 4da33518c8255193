"""Every script over every kind of cache: the clean engine's two paths are one function."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from mutkv.errors import ReplicasDisagree
from mutkv.grid.clean import run_clean
from mutkv.grid.run import clean_runs
from mutkv.workloads import full_stepwise, layout_of, record

from .clean_runs import BASE, SEEDS, clean, configurations

SINGLE = [pytest.param(point, id=f"{workload}, {kind}") for workload, kind, point in configurations()]
THREE = [pytest.param(point, id=f"{workload}, {kind}") for workload, kind, point in configurations(batch=3)]
EXACT = [part for part in (*SINGLE, *THREE) if not part.values[0].arithmetic.native]


@pytest.mark.parametrize("point", EXACT)
def test_a_clean_engine_deviates_by_nothing_and_holds_what_a_recompute_computes(point):
    run = clean(point)
    assert run.recording.logits.isfinite().all()
    assert torch.equal(run.recording.logits, run.full)
    for held in run.recording.held:
        trace = run.traces[run.recording.place(held.conversation)]
        for layer, (keys, values) in enumerate(held.stored):
            there = ~keys.isnan()
            assert torch.equal(keys[there], trace.keys[layer][there])
            assert torch.equal(values[there], trace.values[layer][there])
            assert point.ring or there.all()


@pytest.mark.parametrize("point", SINGLE)
def test_a_recompute_at_every_observation_is_the_recompute_at_once(point):
    run = clean(point)
    if not point.arithmetic.native:  # native sums depend on the length of what is computed at once
        assert torch.equal(full_stepwise(run.engine, run.recording), run.full)


@pytest.mark.parametrize("point", [*SINGLE, *THREE])
def test_the_places_of_observations_are_known_before_anything_runs(point):
    found, planned = clean(point).recording.layout, layout_of(point)
    for name in found.__slots__:
        assert np.array_equal(getattr(found, name), getattr(planned, name)), name


@pytest.mark.parametrize("point", SINGLE)
def test_a_run_that_repeats_decisions_repeats_everything(point):
    run = clean(point)
    with torch.no_grad():
        again = record(run.engine, point, SEEDS, run.recording)
    assert torch.equal(again.logits, run.recording.logits)
    assert torch.equal(again.forced_tokens, run.recording.forced_tokens)


@pytest.mark.parametrize("point", SINGLE)
def test_seeds_together_are_seeds_alone(point):
    together = clean(point)
    for place, seed in enumerate(SEEDS):
        alone = clean(point, (seed,))
        assert torch.equal(alone.recording.logits[0], together.recording.logits[place])
        assert torch.equal(alone.full[0], together.full[place])


def test_seeds_that_disagree_about_tables_are_run_one_by_one():
    point = replace(BASE, workload="beam", batch=3, block=3)
    with pytest.raises(ReplicasDisagree), torch.no_grad():
        run_clean(point, (0, 1, 2), "cpu")
    with torch.no_grad():
        runs = list(clean_runs(point, (0, 1, 2), "cpu"))
    assert [run.seeds for run in runs] == [(0,), (1,), (2,)]
