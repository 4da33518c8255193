"""Runs after the first: nothing is computed twice, the manifest stays true, and the latest results are taken."""

import json
import os

from mutkv.grid.results import load
from mutkv.resources import shipped

from .command import content, run_line, write_mutant, write_scenario


def test_a_second_run_computes_nothing_says_so_and_prints_the_same(here, mutkv, monkeypatch):
    first = mutkv("grid show").out
    before = content("results/tiny")
    monkeypatch.setattr("mutkv.grid.grid.run_group", None)
    done = mutkv("grid run tiny.toml --jobs 2")
    assert (done.code, done.out) == (0, first)
    assert done.err == "nothing to compute: all 20 cases are recorded in results/tiny\n"
    assert content("results/tiny") == before  # the manifest goes on saying what made the rows


def test_the_manifest_says_what_made_the_rows(here, mutkv):
    assert mutkv("grid run tiny.toml --out again").code == 0
    manifest = json.loads((here / "again/manifest.json").read_text())
    assert manifest["argv"] == ["mutkv", "grid", "run", "tiny.toml", "--out", "again"]
    assert (manifest["scenario"], manifest["cases"], manifest["jobs"], manifest["device"]) == ("tiny", 20, 1, "cpu")
    plan = json.loads((here / "again/plan.json").read_text())
    assert list(plan["mutants"]) == ["posfrozen", "stale", "tril"]


def test_without_a_path_the_results_that_were_planned_last_are_taken(here, mutkv):
    write_scenario("other.toml", "other", ["tril"])
    assert mutkv("grid run other.toml").code == 0
    for latest, older in (("other", "tiny"), ("tiny", "other")):
        os.utime(f"results/{latest}/plan.json", (2_000_000_000, 2_000_000_000))
        os.utime(f"results/{older}/plan.json", (1_000_000_000, 1_000_000_000))
        for line in ("score --detector one-step", "grid status", "grid show"):
            assert mutkv(f"{line} --json").json["scenario"] == latest
        assert mutkv(f"score results/{older} --json --detector one-step").json["scenario"] == older


def test_results_outside_the_results_folder_are_taken_only_by_their_path(here, mutkv):
    write_scenario("other.toml", "other", ["tril"])
    assert mutkv("grid run other.toml --out elsewhere").code == 0
    assert mutkv("score --json --detector one-step").json["scenario"] == "tiny"
    assert mutkv("score elsewhere --json --detector one-step").json["scenario"] == "other"


def test_planning_writes_and_runs_nothing(here, mutkv):
    before = content(here)
    done = mutkv("grid plan tiny.toml --json")
    assert done.code == 0
    assert (done.json["scenario"], done.json["cases"], len(done.json["groups"])) == ("tiny", 20, 2)
    assert mutkv("grid plan tiny.toml").out.startswith("tiny: 20 cases in 2 groups\n")
    assert content(here) == before
    assert done.json == json.loads((here / "results/tiny/plan.json").read_text())


def test_a_ninth_mutant_is_one_file_in_a_users_folder(here, mutkv):
    mine = write_mutant(here / "mine")
    done = mutkv(f"grid run tiny.toml --mutants {mine}")
    assert done.code == 0
    assert done.err == "20 of 24 cases are recorded in results/tiny, computing the rest\n"
    rows = mutkv("grid show --json").json["rows"]
    [row] = [row for row in rows if row["mutant"] == "halfpos"]
    assert (row["cases"], row["observable %"]) == (4, 100.0)
    assert row["max|Δ| step 1"] > 1e-3
    score = mutkv("score --by mutant --label observable --json --detector one-step --detector prefill")
    assert score.code == 0
    seen, blind = score.json["by"]["mutant"]["halfpos"]["detectors"]
    assert (seen["recall"]["value"], blind["recall"]["value"]) == (1.0, 0.0)
    assert "halfpos" in mutkv(f"mutants list --mutants {mine}").out
    assert "start = self.length // 2" in mutkv(f"mutants show halfpos --mutants {mine}").out
    assert set(load("results/tiny").cases.query("mutant == 'halfpos'")["kind"]) == {"faulty"}


def test_a_mutant_that_applies_to_no_configuration_is_a_warning_and_the_rest_runs(here, mutkv):
    mine = write_mutant(here / "mine", features=["gqa"], witness={"kv_heads": 1})
    done = mutkv(f"grid run tiny.toml --mutants {mine} --out fresh --json")
    assert done.code == 0
    reason = "no configuration of this scenario has its features and workload"
    assert done.line == f"warning: mutant 'halfpos' is not run: {reason}"
    assert done.json["completeness"]["planned"] == 20
    assert "halfpos" not in {row["mutant"] for row in done.json["rows"]}


def test_a_users_mutant_with_the_id_of_a_shipped_one_is_refused(here, mutkv):
    done = mutkv(f"grid run tiny.toml --mutants {write_mutant(here / 'mine', id='tril')}")
    assert (done.code, done.out) == (2, "")
    assert "mutant 'tril' is in both" in done.line


def test_the_exit_code_is_what_the_process_leaves_by(here, monkeypatch):
    assert run_line(monkeypatch, "score nowhere") == 2


def test_a_mutant_that_was_edited_and_edited_back_is_run_again_as_it_is_recorded(here, mutkv):
    """The rows of both versions are there; what is run again must be the version that the plan asks for."""
    text = (shipped("mutants") / "position" / "posoff.toml").read_text().replace('id = "posoff"', 'id = "mine"')
    (here / "mine").mkdir()
    code = "def check(engine):\n    one = engine.open()\n    import torch\n"
    code += "    tokens = torch.zeros(1, 1, 3, dtype=torch.int64) + torch.arange(3)\n"
    code += "    one.extend(tokens[..., :2])\n"
    code += "    assert torch.equal(one.extend(tokens[..., 2:]), engine.full(tokens)[:, :, 2:])\n"
    (here / "live.py").write_text("import mutkv\n\n\n@mutkv.detector(needs='live')\n" + code)
    shares = []
    for becomes in ("max(self.length - 1, 0)", "self.length + 0", "max(self.length - 1, 0)"):
        (here / "mine" / "mine.toml").write_text(text.replace("max(self.length - 1, 0)", becomes))
        assert mutkv("grid run tiny.toml --mutants mine").code == 0
        rows = mutkv("score results/tiny --label observable --by mutant --detector live.py:check --json").json
        shares.append(rows["by"]["mutant"].get("mine", {"detectors": [{"flagged": None}]})["detectors"][0]["flagged"])
    assert shares[0] == shares[2]
    assert shares[0] != shares[1]
