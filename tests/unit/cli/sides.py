"""Sides of the rows of exit_codes.md: functions that play a row in a project with actors.

Each returns the exit code.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gate.decide.evidence.baseline import make_baselines
from gate.files.codec import RUN
from gate.fingerprint import compute_environment_id
from gate.records.cases import Metric, Policy
from gate.records.run import Run
from gate.store.baselines import propose_baselines, save_baselines
from tests.make import make_failure
from tests.unit.cli.conftest import CASE_ID, CONFIG, RunGate, Sandbox, make_run

Side = Callable[["Scene"], int]

TOMORROW = (datetime.now(UTC) + timedelta(days=2)).date().isoformat()
YESTERDAY = (datetime.now(UTC) - timedelta(days=2)).date().isoformat()
SLOWER_S = 0.003  # of 0.010 s: 30 %
COMPARE = ("compare", "old.json", "new.json")


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Where a row is played: a project for commands in this process, and a process of its own."""

    sandbox: Sandbox
    run_gate: RunGate
    read_printed: Callable[[], str]  # what was printed since it was last asked


def judge(run: Run, *options: str) -> Side:
    """Compare a run with the old one."""

    def play(scene: Scene) -> int:
        RUN.save(run, scene.sandbox.top / "new.json")
        return scene.sandbox.run(*COMPARE, *options)

    return play


def judge_by(run: Run) -> Side:
    """Compare the old run with another."""

    def play(scene: Scene) -> int:
        RUN.save(run, scene.sandbox.top / "new.json")
        return scene.sandbox.run("compare", "new.json", "old.json")

    return play


def call(*arguments: str, **files: str) -> Side:
    """Run a command after writing files; a keyword is a file's name with a dot for each underscore."""

    def play(scene: Scene) -> int:
        for name, text in files.items():
            path = scene.sandbox.top / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return scene.sandbox.run(*arguments)

    return play


def plant(fault: str, amount: float, *arguments: str) -> Side:
    """Run a command on a working tree with a fault."""

    def play(scene: Scene) -> int:
        scene.sandbox.plant(fault, amount)
        return scene.sandbox.run(*arguments)

    return play


def change(run: Run, metric: Metric, *values: float) -> Run:
    """The run with other values of a metric, one a trial; with none it was not measured."""
    trials = []
    for index, trial in enumerate(run.trials):
        samples = {name: kept for name, kept in trial.samples.items() if name is not metric}
        if values:
            samples[metric] = (values[index],)
        trials.append(replace(trial, samples=samples))
    return replace(run, trials=tuple(trials))


CRASH = make_failure(CASE_ID, trial=5, stage="warm")
SAME = make_run()
SLOW = make_run(latency_s=0.013)
BROKEN = make_run(breaks=1.0)
UNSTABLE = change(SAME, Metric.GRAPH_BREAKS, 0.0, 0.0, 1.0, 0.0, 1.0)
CRASHED = replace(SAME, failures=(CRASH,))
MORE = change(SAME, Metric.RECOMPILES, *[3.0] * 5)  # a metric that the old run lacks
WITH_GAP = replace(
    SAME, cases=(*SAME.cases, replace(SAME.cases[0], id="actor/training-float32-smoke-default"))
)
RENAMED = replace(
    SAME,
    cases=(replace(SAME.cases[0], id="actor/renamed"),),
    trials=tuple(replace(trial, case_id="actor/renamed") for trial in SAME.trials),
    selection="actor",
)
ACCEPTED = f"""\
version: 1
accepted:
  - {{case: {CASE_ID}, metric: graph_breaks, allowance: 1, reason: a print, author: ada, expires: EXPIRES}}
"""
QUARANTINE = f"""\
{CONFIG}quarantine:
  - {{case: {CASE_ID}, metric: graph_breaks, owner: ada, reason: a print, expires: EXPIRES}}
"""
LACK = f"""\
version: 1
commit: {"a" * 40}
accepted:
  - {{case: {CASE_ID}, reason: the first change with a gate, author: ada, expires: EXPIRES,
      gate: gate.yml, environment: {compute_environment_id(SAME.environment)}}}
"""


def store(directory: Path, run: Run) -> None:
    """Store a run as baselines."""
    proposals = propose_baselines(make_baselines(run, run.provenance), {}, Policy(thresholds={}))
    save_baselines(directory, proposals)


def accept(expires: str) -> Side:
    """Judge one more graph break, accepted until a day."""

    def play(scene: Scene) -> int:
        store(scene.sandbox.top / "stored", SAME)
        text = ACCEPTED.replace("EXPIRES", expires)
        (scene.sandbox.top / "stored" / "accepted.yml").write_text(text, encoding="utf-8")
        RUN.save(BROKEN, scene.sandbox.top / "new.json")
        return scene.sandbox.run("compare", "stored", "new.json")

    return play


def quarantine(expires: str) -> Side:
    """Judge one more graph break, in quarantine until a day."""

    def play(scene: Scene) -> int:
        text = QUARANTINE.replace("EXPIRES", expires)
        (scene.sandbox.top / "gate.yml").write_text(text, encoding="utf-8")
        return judge(BROKEN)(scene)

    return play


def accept_lack(*options: str) -> Side:
    """Judge without any baseline."""

    def play(scene: Scene) -> int:
        (scene.sandbox.top / "none").mkdir()
        text = LACK.replace("EXPIRES", TOMORROW)
        (scene.sandbox.top / "commit.yml").write_text(text, encoding="utf-8")
        return scene.sandbox.run("compare", "none", "old.json", *options)

    return play


def read_stored(*, is_link: bool) -> Side:
    """Judge by stored baselines, of which one environment's are behind a broken link."""

    def play(scene: Scene) -> int:
        store(scene.sandbox.top / "stored", SAME)
        if is_link:
            (scene.sandbox.top / "stored" / "cpu-other").symlink_to(scene.sandbox.top / "nowhere")
        return scene.sandbox.run("compare", "stored", "old.json")

    return play


def print_to(path: str, run: Run) -> Side:
    """Compare in a process whose output nobody reads, or which is on a full disk."""

    def play(scene: Scene) -> int:
        RUN.save(run, scene.sandbox.top / "new.json")
        if path:
            with Path(path).open("w", encoding="utf-8") as full:
                return scene.run_gate(*COMPARE, capture_output=False, stdout=full).returncode
        reader, writer = os.pipe()
        os.close(reader)
        return scene.run_gate(*COMPARE, capture_output=False, stdout=writer).returncode

    return play


def check_with_base(base: str) -> Side:
    """Check with a base, in a repository with a commit."""

    def play(scene: Scene) -> int:
        scene.sandbox.begin()
        return scene.sandbox.run("check", "--quiet", "--base", base)

    return play


def check_branch(fault: str) -> Side:
    """Check a branch that is one commit ahead of main, and name no base."""

    def play(scene: Scene) -> int:
        scene.sandbox.begin()
        scene.sandbox.change(fault, SLOWER_S)
        return scene.sandbox.run("check", "--quiet")

    return play


def remove_config(scene: Scene) -> int:
    """Check where there is no gate.yml: one directory too high, as a rule."""
    scene.sandbox.top.joinpath("gate.yml").unlink()
    return scene.sandbox.run("check", "--quiet")


def resume(scene: Scene) -> int:
    """Continue a run that was measured."""
    assert scene.sandbox.run("measure", "--quiet") == 0
    return scene.sandbox.run("check", "--quiet", "--resume")


def compare_arms(fault: str, amount: float) -> Side:
    """Compare the working tree with its commit."""

    def play(scene: Scene) -> int:
        scene.sandbox.begin()
        with (scene.sandbox.top / "gate.yml").open("a", encoding="utf-8") as config:
            config.write("# changed\n")
        if fault:
            scene.sandbox.plant(fault, amount)
        return scene.sandbox.run("ab", "HEAD", "--quiet")

    return play


def show_none(scene: Scene) -> int:
    """List the baselines of a project without any."""
    shutil.rmtree(scene.sandbox.top / "baselines")
    return scene.sandbox.run("baseline", "show")


def anchor(*arguments: str) -> Side:
    """Set the anchor in a repository with a commit."""

    def play(scene: Scene) -> int:
        scene.sandbox.begin()
        return scene.sandbox.run("baseline", "anchor", *arguments, "--reason", "a release")

    return play


def compare_with_anchor(fault: str, amount: float) -> Side:
    """Compare a later commit's working tree with the anchor."""

    def play(scene: Scene) -> int:
        scene.sandbox.begin()
        assert scene.sandbox.run("baseline", "anchor", "--reason", "a release") == 0
        scene.sandbox.git("commit", "--quiet", "--allow-empty", "--message", "Go on")
        if fault:
            scene.sandbox.plant(fault, amount)
        return scene.sandbox.run("ab", "--anchor", "--quiet")

    return play


def bisect(fault: str) -> Side:
    """Search between a commit and the next, which has a fault."""

    def play(scene: Scene) -> int:
        scene.sandbox.begin()
        scene.sandbox.plant(fault)
        scene.sandbox.git("add", "fault.json")
        scene.sandbox.git("commit", "--quiet", "--message", "Break it")
        return scene.sandbox.run("bisect", CASE_ID, "graph_breaks", "--good", "HEAD~1", "--quiet")

    return play


def calibrate(trials: int) -> Side:
    """Calibrate on this number of recorded trials."""

    def play(scene: Scene) -> int:
        RUN.save(make_run(trials=trials), scene.sandbox.top / "new.json")
        return scene.sandbox.run("calibrate", "--run", "new.json", "--requests", "4")

    return play


def try_faults(*options: str, fault: str = "graph_break", blind: str = "") -> Side:
    """Plant a fault, to which the model may be blind."""

    def play(scene: Scene) -> int:
        config = CONFIG.replace("actor:build\n", f"actor:build\n    arguments: {{blind: [{blind}]}}\n")
        (scene.sandbox.top / "gate.yml").write_text(config, encoding="utf-8")
        return scene.sandbox.run("selftest", "--quiet", "--faults", fault, "--repeats", "1", *options)

    return play


def explain(case: str) -> Side:
    """Explain a case of a regression's verdict, or one that it does not have."""

    def play(scene: Scene) -> int:
        assert scene.sandbox.run("compare", "old.json", "slow.json", "--out", "told") == 10
        return scene.sandbox.run("explain", case, "told")

    return play


def report_again(verdict: str) -> Side:
    """Render a regression's verdict, or something else."""

    def play(scene: Scene) -> int:
        assert scene.sandbox.run("compare", "old.json", "slow.json", "--out", "told") == 10
        return scene.sandbox.run("report", verdict)

    return play


def merge(*names: str, run: Run = CRASHED) -> Side:
    """Join runs."""

    def play(scene: Scene) -> int:
        RUN.save(run, scene.sandbox.top / "new.json")
        code = scene.sandbox.run("merge", *names, "--out", "joined")
        if code == 0:
            assert scene.sandbox.run("compare", "old.json", "joined/run.json") == 12
        return code

    return play
