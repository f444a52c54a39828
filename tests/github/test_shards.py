"""Shards through the action: measured apart, joined, judged; what did not come back is INCOMPLETE.

The commands are the real ones; only what a shard would measure is made up.
"""

import shutil
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from action.played_step import ActionStep
from action.samples import commit
from refreshes import ENVIRONMENT, list_cases

from gate.cli import main
from gate.decide.evidence.baseline import make_baselines
from gate.files.codec import RUN
from gate.project.plan import pick_shard
from gate.records.cases import Case, Metric, Policy
from gate.records.run import Provenance, Run
from gate.store.baselines import propose_baselines, save_baselines
from tests.make import make_run, make_trials

MODELS = ("bert", "llama", "lstm", "unet", "vit")
CONFIG = "version: 1\nreference_models: false\nselect: tag:pr\nmodels:\n" + "".join(
    f"  - {{name: {name}, factory: 'bench:{name}', cases: [{{size: smoke, tags: [pr]}}]}}\n"
    for name in MODELS
)
CASES = list_cases(CONFIG)


def measure_cases(cases: tuple[Case, ...], sha: str, breaks: float = 0.0) -> Run:
    """A machine's run: three trials of each of the cases."""
    samples = [{Metric.COMPILED_LATENCY: 0.01, Metric.GRAPH_BREAKS: breaks}] * 3
    return make_run(
        *chain.from_iterable(make_trials(case.id, samples) for case in cases),
        cases=cases,
        environment=ENVIRONMENT,
        provenance=Provenance(commit=sha, created="2026-11-01T10:00:00Z"),
        trials_planned=3,
    )


@pytest.fixture
def action(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> ActionStep:
    """A job whose base commit has five cases with baselines, and which runs the real command."""
    action = ActionStep(tmp_path, monkeypatch, capsys)
    action.command = lambda argv, _: main(argv)
    Path("gate.yml").write_text(CONFIG)
    run = measure_cases(CASES, "b" * 40)
    baselines = make_baselines(run, run.provenance)
    save_baselines(Path("baselines"), propose_baselines(baselines, {}, Policy(thresholds={})))
    base = commit(Path.cwd(), "base")
    # The change takes a case out of its own registry; the base's holds.
    Path("gate.yml").write_text("".join(line for line in CONFIG.splitlines(True) if "vit" not in line))
    action.set_pull(base, commit(Path.cwd(), "head"))
    for number in (1, 2, 3):
        leave_shard(number)
    return action


def leave_shard(number: int, breaks: float = 0.0) -> None:
    """Write what one of three shards uploads, where download-artifact puts it."""
    cases, shard = pick_shard(CASES, number, 3)
    run = replace(measure_cases(cases, "a" * 40, breaks), shard=shard, selection="tag:pr")
    RUN.save(run, Path("shards", f"compile-gate-shard-{number}", "run.json"))


def test_all_shards_make_one_verdict(action: ActionStep) -> None:
    """The merged run is judged by the base commit's baselines."""
    assert action.run(mode="judge") == 0

    outputs = action.outputs
    assert (outputs["verdict"], outputs["cases"], outputs["head-sha"]) == ("PASS", "5", action.head)
    assert Path(outputs["report-path"]).read_text().startswith("## ")


def test_a_regression_in_one_shard_is_the_verdict(action: ActionStep) -> None:
    """One shard's new graph breaks turn the merged verdict red."""
    leave_shard(2, breaks=1.0)

    assert action.run(mode="judge") == 10
    assert (action.outputs["verdict"], action.outputs["regressions"]) == ("REGRESSION", "2")


def test_no_shard_at_all_is_an_error(action: ActionStep) -> None:
    """Nothing is known of the machine then: there is no verdict, and the red job gives the reason."""
    shutil.rmtree("shards")

    assert action.run(mode="judge") == 2
    assert action.outputs == {"exit-code": "2"}
    assert "there is no run.json below 'shards'" in action.read_printed()


def test_shards_of_two_kinds_of_machine_are_not_joined(action: ActionStep) -> None:
    """Times of another host are no evidence about this one: the error names the difference."""
    path = Path("shards", "compile-gate-shard-2", "run.json")
    path.write_text(path.read_text().replace("AMD EPYC 7B13", "AMD EPYC 9654"))

    assert action.run(mode="judge") == 2
    assert "another environment" in action.read_printed()


def test_without_baselines_and_pairs_nothing_is_compared(action: ActionStep) -> None:
    """A repository without baselines gets a verdict, not an error."""
    assert action.run(mode="judge", baselines="none yet") == 3
    assert action.outputs["verdict"] == "NOTHING_COMPARED"


def test_a_shard_is_checked_by_the_base_commits_rules(action: ActionStep) -> None:
    """As a whole check, but for its part alone; its run is the output, and nothing fails."""

    def check(_: list[str], environment: dict[str, str]) -> int:
        assert "GITHUB_OUTPUT" not in environment
        RUN.save(measure_cases(CASES, "a" * 40), Path("out/run.json"))
        return 0

    action.command = check

    assert action.run(mode="measure", shard="2/3") == 0

    ((command, rules, tree, *others),) = action.seen
    assert (command, rules) == ("check", f"--rules={action.base}")
    assert tree.startswith("--base-tree=")
    assert others == [f"--base={action.base}", "--shard=2/3", "--fail-on=never"]
    assert action.outputs["baseline-sha"] == action.base
    assert action.outputs["result-path"] == str(Path("out/run.json").absolute())
