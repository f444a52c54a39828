"""What ``check`` compares with, and when pairs may decide."""

import os
import re
import shutil
import signal
import subprocess
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gate.cli import lanes, main
from gate.cli.check import explain_no_base
from gate.cli.setup import note_rules
from gate.decide.verdict import decide_verdict
from gate.errors import ExitCode
from gate.files.codec import RUN, VERDICT
from gate.lab.arms.arms import ArmOptions
from gate.lab.host.cores import write_cores
from gate.lab.trials import opening
from gate.metrics import SPECS, Scope
from gate.project.config import load_config
from gate.records.cases import Policy
from gate.records.codes import Code
from gate.report.words.facts import write_note
from tests.git import run_git
from tests.unit.cli.conftest import CONFIG, Sandbox, make_run
from tests.unit.cli.sides import SLOWER_S
from tests.words import write_notes


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit."""
    (tmp_path / "gate.yml").write_text("version: 1\n", encoding="utf-8")
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "Begin")):
        run_git(tmp_path, *arguments)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "decides_alone"), [("version: 1\n", True), ("version: 1\ntrials: 2\n", False)]
)
def test_commit_is_not_compared_with_itself(project: Path, text: str, decides_alone: bool) -> None:
    """Pairs of one commit would acquit what the stored baselines convict; with a change they decide."""
    (project / "gate.yml").write_text(text, encoding="utf-8")
    asked = ArmOptions(directory=project, base="HEAD", from_merge_base=True)
    note = explain_no_base(Namespace(base="HEAD", no_base=False), asked)
    assert (note is not None) is decides_alone
    if note is not None:
        assert write_note(note).endswith(
            "nothing differs from merge-base with HEAD (" + note.name("base")[-8:] + "."
        )


@pytest.mark.parametrize(
    ("commit", "notes"),
    [
        ("", ["This change edits the gate's configuration: gate.yml (1 file), baselines (2 files)."]),
        ("0123456789", []),
    ],
)
def test_a_change_that_moves_its_own_bar_is_noted(
    project: Path, monkeypatch: pytest.MonkeyPatch, commit: str, notes: list[str]
) -> None:
    """Unless a commit's rules judge, the change's own thresholds and baselines do."""
    monkeypatch.chdir(project)
    (project / "baselines" / "host").mkdir(parents=True)
    for name in ("accepted.yml", "host/old.json"):
        (project / "baselines" / name).write_text("{}", encoding="utf-8")
    subprocess.run(("git", "add", "baselines"), check=True)
    (project / "gate.yml").write_text("version: 1\nselect: '!bert'\n", encoding="utf-8")
    config = replace(load_config(None), commit=commit)
    verdict = decide_verdict(make_run(), (), Policy(thresholds={}))
    noted = note_rules(verdict, config, "HEAD")
    assert [f"{text} Review that first." for text in notes] == [
        text for text in write_notes(noted) if text not in write_notes(verdict)
    ]
    assert note_rules(verdict, config, "") == verdict


def test_shards_that_were_checked_are_merged_and_judged_again(sandbox: Sandbox) -> None:
    """Each run names its part, so that `merge` notices a missing one."""
    text = (sandbox.top / "gate.yml").read_text(encoding="utf-8")
    second = text[text.index("  - name: actor") :].replace("name: actor", "name: other")
    (sandbox.top / "gate.yml").write_text(text + second, encoding="utf-8")
    assert [sandbox.run("check", "--quiet", "--shard", f"{n}/2", "--out", f"s{n}") for n in (1, 2)] == [0, 3]
    notes = VERDICT.load(Path("s1", "verdict.json")).notes
    assert Code.ONE_SHARD in [note.code for note in notes]
    assert sandbox.run("merge", "s1/run.json", "--out", "one") == 2
    assert sandbox.run("merge", "s1/run.json", "s2/run.json", "--out", "joined") == 0
    assert sandbox.run("compare", "baselines", "joined/run.json") == 0
    assert "2 cases" in sandbox.read().out


def begin_trunk(sandbox: Sandbox) -> None:
    """Commit the project to a branch whose name is no main branch's."""
    sandbox.begin()
    sandbox.git("branch", "--move", "trunk")


def load_base(sandbox: Sandbox) -> tuple[str, int]:
    """The base of the last verdict, without the commit, and its number of pairs."""
    verdict = VERDICT.load(sandbox.top / "out" / "verdict.json")
    return (verdict.base.label.partition(" (")[0] if verdict.base else ""), verdict.tally.pairs


def test_a_branch_is_compared_with_where_it_left_main(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --base and without baselines; the last line names the page."""
    sandbox.begin("gate.yml")
    shutil.rmtree("baselines")
    sandbox.change("graph_break")
    assert sandbox.run("check", "--quiet") == ExitCode.REGRESSION
    assert capsys.readouterr().out.splitlines()[-1].startswith("page  ")
    assert load_base(sandbox)[0] == "merge-base with main"
    assert sandbox.run("check", "--quiet", "--no-base") == ExitCode.NOTHING_COMPARED
    assert load_base(sandbox) == ("", 0)


def test_uncommitted_changes_of_main_are_compared_with_its_commit(sandbox: Sandbox) -> None:
    """The base is the last commit; the baselines decide what gets a pair."""
    sandbox.begin("gate.yml", "baselines")
    (sandbox.top / "gate.yml").write_text(f"{CONFIG}# changed\n", encoding="utf-8")
    sandbox.plant("graph_break")
    assert sandbox.run("check", "--quiet") == ExitCode.REGRESSION
    assert load_base(sandbox)[0] == "merge-base with main"


def test_an_unchanged_main_branch_leaves_no_verdict_of_another_run(sandbox: Sandbox) -> None:
    """The exit code is 3, the old REGRESSION is removed and the new run is kept."""
    sandbox.begin("gate.yml")
    shutil.rmtree("baselines")
    sandbox.change("graph_break")
    assert sandbox.run("check", "--quiet") == ExitCode.REGRESSION
    sandbox.git("checkout", "--quiet", "main")
    assert sandbox.run("check", "--quiet") == ExitCode.NOTHING_COMPARED
    assert sorted(path.name for path in Path("out").glob("*.*")) == [".gitignore", "run.json"]


def clone_shallowly(sandbox: Sandbox) -> None:
    """Work in a clone that has the branch's last commit, but not where it left ``main``."""
    sandbox.begin()
    sandbox.change("graph_break")
    sandbox.git("checkout", "--quiet", "main")  # so that the clone knows it as the main branch
    source = sandbox.top.rename(sandbox.top.with_name("source"))
    command = ("clone", "--quiet", "--depth=1", "--no-single-branch", "--branch=feature", f"file://{source}")
    subprocess.run(("git", *command, str(sandbox.top)), cwd=source.parent, check=True)
    os.chdir(sandbox.top)


@pytest.mark.parametrize(
    ("begin", "code", "reason"),
    [
        (lambda _place: None, ExitCode.PASS, "is not in a git repository. Run in a checkout"),
        (Sandbox.begin, ExitCode.PASS, "nothing differs from main"),
        (
            begin_trunk,
            ExitCode.PASS,
            "cannot find out which branch is your main branch. Name it: `check --base BRANCH`",
        ),
        (
            lambda sandbox: sandbox.git("init", "--quiet"),
            ExitCode.PASS,
            "this repository has no commit yet. Commit what is there",
        ),
        (clone_shallowly, ExitCode.REGRESSION, "this shallow clone lacks the commit where HEAD left origin/"),
    ],
)
def test_without_a_base_the_stored_baselines_judge(
    sandbox: Sandbox, begin: Callable[[Sandbox], object], code: ExitCode, reason: str
) -> None:
    """One note gives the reason and the fix."""
    begin(sandbox)
    assert sandbox.run("check") == code
    notes = [line for line in sandbox.read().err.splitlines() if "the stored baselines alone" in line]
    assert [line for line in notes if line.startswith("note: compared with the stored baselines alone: ")]
    assert reason in notes[0]
    assert load_base(sandbox) == ("", 0)


def test_the_change_that_brings_gate_yml_is_compared(sandbox: Sandbox) -> None:
    """The base gets the gate.yml and the factory that it lacks while it is measured."""
    (sandbox.top / "actor.py").write_text("", encoding="utf-8")
    sandbox.begin("old.json")
    sandbox.git("checkout", "--quiet", "-b", "feature")
    sandbox.git("add", "gate.yml")
    sandbox.git("commit", "--quiet", "--message", "Measure it")
    shutil.rmtree("baselines")
    sandbox.plant("graph_break")
    assert sandbox.run("check") == ExitCode.REGRESSION
    errors = sandbox.read().err
    assert "has no gate.yml: yours is used for both sides (gate.yml, actor.py)" in errors
    assert re.search(r"^note: base: merge-base with main \(\w+\); head: working tree ", errors, re.MULTILINE)
    assert sandbox.run("ab", "main", "feature", "--quiet") == ExitCode.PASS
    assert load_base(sandbox) == ("main", 3)


@pytest.mark.parametrize("command", ["check", "measure", "baseline refresh", "calibrate"])
def test_a_mistyped_factory_names_its_line(sandbox: Sandbox, command: str) -> None:
    """The error comes before any wait for a lock, and removes nothing of the last run."""
    (sandbox.top / "actor.py").rename(sandbox.top / "actors.py")
    assert sandbox.run(*command.split(), "--quiet") == ExitCode.USAGE
    what, fix = sandbox.read().err.splitlines()
    problem = f"there is no module 'actor' in {sandbox.top}, and none is installed"
    assert what == f"compile-gate: gate.yml:6: models[0].factory: {problem}"
    assert fix.startswith("Check its spelling")


def test_a_check_that_can_compare_nothing_spends_no_minutes(sandbox: Sandbox) -> None:
    """On an unchanged main branch without baselines it prints what to do instead."""
    sandbox.begin("gate.yml")
    shutil.rmtree("baselines")
    assert sandbox.run("check") == ExitCode.NOTHING_COMPARED
    what, fix = sandbox.read().err.splitlines()
    assert what.endswith("differs from main, and the directory baselines has no baseline of these cases")
    assert "add --base HEAD~1" in fix
    assert not (sandbox.top / "out").exists()
    assert sandbox.run("check", "--quiet", "--fail-on", "never") == ExitCode.PASS
    assert sandbox.run("check", "--quiet", "--history", "runs.jsonl") == ExitCode.NOTHING_COMPARED
    assert (sandbox.top / "runs.jsonl").is_file()
    sandbox.read()
    assert sandbox.run("check", "--no-base") == ExitCode.NOTHING_COMPARED
    notes = sandbox.read().err.splitlines()
    index = next(index for index, line in enumerate(notes) if "nothing will be judged" in line)
    assert "leave out --no-base; to record baselines, `compile-gate baseline refresh`" in notes[index]
    assert index < next(index for index, line in enumerate(notes) if line.startswith("warming up"))


@pytest.mark.parametrize(
    "command", ["check", "ab", "measure", "baseline refresh", "selftest", "plan", "models"]
)
def test_without_a_gate_yml_nothing_is_measured(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """The commonest mistake, a directory too high, costs no minutes."""
    (project / "gate.yml").unlink()
    monkeypatch.chdir(project)
    assert main(command.split()) == ExitCode.USAGE
    assert capsys.readouterr().err == (
        f"compile-gate: no gate.yml in {project} or above it: there is nothing to measure\n"
        "Write one with `compile-gate init package.module:Class`, or add --reference-models.\n"
    )
    assert not (project / "out").exists()


def test_the_reference_models_are_asked_for(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever gate.yml has, and without a note."""
    monkeypatch.chdir(project)
    (project / "gate.yml").write_text("version: 9\n", encoding="utf-8")
    assert main(["plan", "--reference-models", "--format", "json"]) == ExitCode.PASS
    printed = capsys.readouterr()
    assert ("bert/inference-float32-smoke-default" in printed.out, printed.err) == (True, "")


def test_results_ignore_themselves(sandbox: Sandbox) -> None:
    """After `git add --all` no result is a change, in a new directory or in an empty one."""
    sandbox.begin("gate.yml", "baselines", "old.json", "slow.json")
    (sandbox.top / "kept").mkdir()
    assert [sandbox.run("measure", "--quiet", "--out", out) for out in ("new/one", "kept")] == [0, 0]
    status = ("git", "status", "--porcelain", "--untracked-files=normal")
    changed = subprocess.run(status, cwd=sandbox.top, check=True, capture_output=True, text=True).stdout
    assert not changed


@pytest.mark.parametrize(
    ("begun", "go_on", "changed"),
    [
        ("measure", "check", "sampling.super_blocks 3 -> 4"),
        ("ab", "ab", "sampling.super_blocks 3 -> 4"),
        ("measure", "calibrate", "threads 2 -> 1"),
        ("measure", "ab", "threads 2 -> 1"),
        ("measure", "baseline refresh", "actor/inference-float32-smoke-default has another definition"),
    ],
)
def test_another_run_is_refused_before_anything_is_opened(
    sandbox: Sandbox, begun: str, go_on: str, changed: str
) -> None:
    """With other options, or pairs instead of trials: before any wait for a lock."""
    sandbox.begin("gate.yml", "baselines", "old.json", "slow.json")
    config = sandbox.top / "gate.yml"
    text = config.read_text(encoding="utf-8")
    config.write_text(f"{text}# changed\n", encoding="utf-8")
    assert sandbox.run(begun, "--quiet") == 0
    edits = {
        "sampling": ("super_blocks: 3", "super_blocks: 4"),
        "threads": ("version: 1", "version: 1\nthreads: 1"),
        "actor": ("build\n", "build\n    arguments: {width: 2}\n"),
    }
    edit = next(edit for key, edit in edits.items() if changed.startswith(key))
    config.write_text(text.replace(*edit), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "open_lab", lambda *_: pytest.fail("it goes on"))
        assert sandbox.run(*go_on.split(), "--quiet", "--resume") == ExitCode.USAGE
    errors = sandbox.read().err
    assert "the saved run cannot be continued: " in errors
    assert ("trials (`check`) -> pairs (`ab`)" in errors) is (begun != go_on == "ab")
    assert changed in errors


@pytest.mark.parametrize(
    ("go_on", "problem"), [(("HEAD~2",), "base commit "), (("HEAD~2", "HEAD~1"), "commit ")]
)
def test_other_commits_are_refused_before_anything_is_opened(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, go_on: tuple[str, ...], problem: str
) -> None:
    """Base or head are not those of the saved run."""
    sandbox.begin("gate.yml", "baselines")
    for number in range(2):
        sandbox.git("commit", "--quiet", "--allow-empty", "--message", f"Change {number}")
    assert sandbox.run("ab", "HEAD~1", "--quiet") == 0
    monkeypatch.setattr(lanes, "open_lab", lambda *_: pytest.fail("it goes on"))
    assert sandbox.run("ab", *go_on, "--quiet", "--resume") == ExitCode.USAGE
    assert f"the saved run cannot be continued: {problem}" in sandbox.read().err


def test_results_are_not_written_among_other_files(sandbox: Sandbox) -> None:
    """A report could replace a file of its name; empty directories and earlier results are accepted."""
    source = sandbox.top / "docs" / "report.md"
    source.parent.mkdir()
    source.write_text("mine\n", encoding="utf-8")
    for command in (("check",), ("compare", "old.json", "slow.json")):
        assert sandbox.run(*command, "--quiet", "--out", "docs") == ExitCode.USAGE
        assert "--out: docs has files in it that compile-gate did not write" in sandbox.read().err
    assert source.read_text(encoding="utf-8") == "mine\n"
    (sandbox.top / "empty").mkdir()
    for out in ("empty", "empty", "new", "new"):
        assert sandbox.run("measure", "--quiet", "--out", out) == 0
        (sandbox.top / out / "run.json").unlink()  # as after a kill before anything was saved
    with (sandbox.top / "gate.yml").open("a", encoding="utf-8") as file:
        file.write("out: docs\n")  # its owner says that results go there, and the action repeats that
    assert sandbox.run("compare", "old.json", "old.json", "--quiet", "--out", "docs") == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_programs_is_an_interrupt(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """A service manager's, or that of a lost terminal, unless nohup ignores it."""
    monkeypatch.setattr(opening, "check_disk", lambda _: signal.raise_signal(number))
    before = signal.signal(number, signal.SIG_DFL)  # the tests may be run by nohup
    try:
        assert sandbox.run("measure", "--quiet") == ExitCode.INTERRUPTED
        assert signal.signal(number, signal.SIG_IGN) is signal.SIG_DFL
        assert sandbox.run("measure", "--quiet") == ExitCode.PASS
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize(
    ("fault", "amount", "arguments", "code"),
    [
        ("slowdown", SLOWER_S, (), 10),
        ("slowdown", SLOWER_S, ("--counts-only",), 0),
        ("graph_break", 0.0, ("--counts-only",), 10),
    ],
)
def test_a_busy_machine_can_compare_counts_alone(
    sandbox: Sandbox, fault: str, amount: float, arguments: tuple[str, ...], code: int
) -> None:
    """A slowdown is not detected, which a note reports; a graph break is. Hardly a call is timed."""
    sandbox.plant(fault, amount)
    assert sandbox.run("check", "--no-base", "--quiet", *arguments) == code
    verdict = VERDICT.load(sandbox.top / "out" / "verdict.json")
    has_times = any(SPECS[row.metric].scope is Scope.HOST for row in verdict.comparisons)
    is_said = any(note.code is Code.COUNTS_ONLY for note in verdict.notes)
    assert (has_times, is_said) == (not arguments, bool(arguments))
    rounds_s = RUN.load(sandbox.top / "out" / "run.json").sampling["max_rounds_s"]
    assert (rounds_s < 0.001) is bool(arguments)


@pytest.mark.parametrize(
    ("cores", "problem"),
    [
        ("99999", "--cores: this process may not run on 99999"),
        (str(min(os.sched_getaffinity(0))), "--cores: 1 core for 2 threads"),
        ("a", "expected a list of cores, as 0-3,8, got 'a'"),
    ],
)
def test_cores_that_cannot_be_used_are_refused(sandbox: Sandbox, cores: str, problem: str) -> None:
    assert sandbox.run("check", "--no-base", "--quiet", "--cores", cores) == 2
    assert problem in sandbox.read().err


def test_a_run_stays_on_the_cores_that_were_named(sandbox: Sandbox) -> None:
    cores = write_cores(sorted(os.sched_getaffinity(0))[:2])
    with (sandbox.top / "gate.yml").open("a", encoding="utf-8") as config:
        config.write("threads: 1\n")
    sandbox.run("check", "--no-base", "--quiet", "--cores", cores)
    (ran_at,) = RUN.load(sandbox.top / "out" / "run.json").places.values()
    assert ran_at.cores == cores


@pytest.mark.parametrize(("fault", "left"), [("slowdown", [0]), ("", [])])
def test_a_check_can_stop_at_the_first_regression(sandbox: Sandbox, fault: str, left: list[int]) -> None:
    """A note counts what is left; without a regression there is none."""
    sandbox.plant(fault, SLOWER_S)
    sandbox.run("check", "--no-base", "--quiet", "-x")
    notes = VERDICT.load(sandbox.top / "out" / "verdict.json").notes
    assert [note.numbers["comparisons"] for note in notes if note.code is Code.FAIL_FAST] == left
