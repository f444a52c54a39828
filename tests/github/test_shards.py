"""Shards through the action: measured apart, joined, judged; what did not come back is INCOMPLETE.

The commands are the real ones; only what a shard would measure is made up.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from action.composite import parse_command_file
from action.samples import ROOT, commit
from refreshes import ENVIRONMENT

from gate.action import step
from gate.action.modes import run_action
from gate.action.step import Ended
from gate.cli import main
from gate.decide.evidence.trials import make_baselines
from gate.files.codec import RUN
from gate.project.config import load_config
from gate.project.plan import pick_shard
from gate.project.registry import load_cases
from gate.records.cases import Case, Metric, Policy
from gate.records.run import Provenance, Run
from gate.store.baselines import propose_baselines, save_baselines
from tests.make import make_run, make_trials

MODELS = ("bert", "llama", "lstm", "unet", "vit")
CONFIG = "version: 1\nreference_models: false\nselect: tag:pr\nmodels:\n" + "".join(
    f"  - {{name: {name}, factory: 'bench:{name}', cases: [{{size: smoke, tags: [pr]}}]}}\n"
    for name in MODELS
)


def measure_cases(cases: tuple[Case, ...], sha: str, breaks: float = 0.0) -> Run:
    """What a machine leaves: three trials of each of the cases."""
    samples = [{Metric.COMPILED_LATENCY: 0.01, Metric.GRAPH_BREAKS: breaks}] * 3
    return make_run(
        *chain.from_iterable(make_trials(case.id, samples) for case in cases),
        cases=cases,
        environment=ENVIRONMENT,
        provenance=Provenance(commit=sha, created="2026-11-01T10:00:00Z"),
        trials_planned=3,
    )


def run_here(argv: list[str], environment: dict[str, str]) -> Ended:
    """Run the real command in this process."""
    assert environment
    return Ended(code=main(argv[5:]))


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A job of a pull request whose base commit has five cases with baselines."""
    workspace = tmp_path / "work space"
    workspace.mkdir()
    monkeypatch.chdir(workspace)
    Path("gate.yml").write_text(CONFIG)
    run = measure_cases(load_cases(load_config(None)), "b" * 40)
    baselines = make_baselines(run, run.provenance)
    save_baselines(Path("baselines"), propose_baselines(baselines, {}, Policy(thresholds={})))
    (tmp_path / "base.yml").write_text(CONFIG)
    base = commit(workspace, "base")
    # The change takes a case out of its own registry; the base's holds.
    Path("gate.yml").write_text("".join(line for line in CONFIG.splitlines(True) if "vit" not in line))
    event = {"pull_request": {"base": {"sha": base}, "head": {"sha": commit(workspace, "head")}}}
    (tmp_path / "event.json").write_text(json.dumps(event))
    monkeypatch.setattr(step, "run_child", run_here)
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "RUNNER_TEMP": str(tmp_path),
    }


def run_mode(environ: dict[str, str], name: str, **inputs: str) -> tuple[int, dict[str, str]]:
    """Run a mode of the action as a job of its own, and return its exit code and outputs."""
    output = Path(environ["RUNNER_TEMP"]) / f"output of {name}"
    given = {f"INPUT_{key.upper()}": value for key, value in inputs.items()}
    code = run_action({**environ, **given, "INPUT_MODE": name, "GITHUB_OUTPUT": str(output)})
    return code, parse_command_file(output.read_text())


def leave_shard(environ: dict[str, str], number: int, breaks: float = 0.0) -> tuple[Case, ...]:
    """Leave what one of three shards uploads, where download-artifact puts it; return its cases."""
    registry = load_cases(load_config(Path(environ["RUNNER_TEMP"]) / "base.yml"))
    cases, shard = pick_shard(registry, number, 3)
    run = replace(measure_cases(cases, "a" * 40, breaks), shard=shard, selection="tag:pr")
    RUN.save(run, Path("shards", f"compile-gate-shard-{number}", "run.json"))
    return cases


def leave_all(environ: dict[str, str]) -> list[tuple[Case, ...]]:
    return [leave_shard(environ, number) for number in (1, 2, 3)]


def test_all_shards_make_one_verdict(environ: dict[str, str]) -> None:
    """Joined they are judged as one run by the base commit's baselines."""
    leave_all(environ)

    code, outputs = run_mode(environ, "judge")

    assert (code, outputs["verdict"], outputs["cases"]) == (0, "PASS", "5")
    event = json.loads(Path(environ["GITHUB_EVENT_PATH"]).read_text())
    assert outputs["head-sha"] == event["pull_request"]["head"]["sha"]
    assert Path(outputs["report-path"]).read_text().startswith("## ")


def test_a_regression_in_one_shard_is_the_verdict(environ: dict[str, str]) -> None:
    """One shard's new graph breaks turn the joined verdict red."""
    leave_all(environ)
    leave_shard(environ, 2, breaks=1.0)

    code, outputs = run_mode(environ, "judge")

    assert (code, outputs["verdict"], outputs["regressions"]) == (10, "REGRESSION", "2")


def test_no_shard_at_all_is_an_error(environ: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is known of the machine then, so there is no verdict; the job is red and says why."""
    code, outputs = run_mode(environ, "judge")

    assert (code, outputs) == (2, {"exit-code": "2"})
    assert "there is no run.json below 'shards'" in capsys.readouterr().out


def test_shards_of_two_kinds_of_machine_are_not_joined(
    environ: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    """Times of another host are no evidence about this one: an error that names the difference."""
    leave_all(environ)
    path = Path("shards", "compile-gate-shard-2", "run.json")
    path.write_text(path.read_text().replace("AMD EPYC 7B13", "AMD EPYC 9654"))

    code, _ = run_mode(environ, "judge")

    assert code == 2
    assert "another environment" in capfd.readouterr().err


def test_without_baselines_and_pairs_nothing_is_compared(environ: dict[str, str]) -> None:
    """A repository that has recorded none gets a verdict, not an error."""
    leave_all(environ)

    code, outputs = run_mode(environ, "judge", baselines="none yet")

    assert (code, outputs["verdict"]) == (3, "NOTHING_COMPARED")


def test_a_shard_is_checked_by_the_base_commits_rules(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a whole check is, but for its part alone; its run is the output, and it fails nothing."""
    seen: list[list[str]] = []

    def check(argv: list[str], environment: dict[str, str]) -> Ended:
        assert "GITHUB_OUTPUT" not in environment
        seen.append(argv[5:])
        RUN.save(measure_cases(load_cases(load_config(None)), "a" * 40), Path("out/run.json"))
        return Ended(code=0)

    monkeypatch.setattr(step, "run_child", check)

    code, outputs = run_mode(environ, "measure", shard="2/3")

    ((command, rules, tree, *others),) = seen
    base = outputs["baseline-sha"]
    assert (command, rules) == ("check", f"--rules={base}")
    assert tree.startswith("--base-tree=")
    assert others == [f"--base={base}", "--shard=2/3", "--fail-on=never"]
    assert code == 0
    assert outputs["result-path"] == str(Path("out/run.json").absolute())
