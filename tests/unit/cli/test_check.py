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
from tests.told import tell_notes
from tests.unit.cli.conftest import CONFIG, Place, make_run
from tests.unit.cli.sides import SLOWER_S


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
def test_commit_is_not_held_against_itself(project: Path, text: str, decides_alone: bool) -> None:
    """Pairs of one commit would acquit what the stored baselines convict; with a change they decide."""
    (project / "gate.yml").write_text(text, encoding="utf-8")
    asked = ArmOptions(directory=project, base="HEAD", from_merge_base=True)
    found = explain_no_base(Namespace(base="HEAD", no_base=False), asked)
    assert (found is not None) is decides_alone
    if found is not None:
        assert write_note(found).endswith(
            "nothing differs from merge-base with HEAD (" + found.name("base")[-8:] + "."
        )


@pytest.mark.parametrize(
    ("commit", "told"),
    [
        ("", ["This change edits the gate's configuration: gate.yml (1 file), baselines (2 files)."]),
        ("0123456789", []),
    ],
)
def test_a_change_that_moves_its_own_bar_says_so(
    project: Path, monkeypatch: pytest.MonkeyPatch, commit: str, told: list[str]
) -> None:
    """Its own thresholds and baselines judge it, unless those of a commit do."""
    monkeypatch.chdir(project)
    (project / "baselines" / "host").mkdir(parents=True)
    for name in ("accepted.yml", "host/old.json"):
        (project / "baselines" / name).write_text("{}", encoding="utf-8")
    subprocess.run(("git", "add", "baselines"), check=True)
    (project / "gate.yml").write_text("version: 1\nselect: '!bert'\n", encoding="utf-8")
    config = replace(load_config(None), commit=commit)
    verdict = decide_verdict(make_run(), (), Policy(thresholds={}))
    noted = note_rules(verdict, config, "HEAD")
    assert [f"{text} Review that first." for text in told] == [
        text for text in tell_notes(noted) if text not in tell_notes(verdict)
    ]
    assert note_rules(verdict, config, "") == verdict


def test_shards_that_were_checked_are_merged_and_judged_again(place: Place) -> None:
    """Each says which part it is, so that `merge` misses none; what they found is found of the whole."""
    text = (place.top / "gate.yml").read_text(encoding="utf-8")
    second = text[text.index("  - name: actor") :].replace("name: actor", "name: other")
    (place.top / "gate.yml").write_text(text + second, encoding="utf-8")
    assert [place.run("check", "--quiet", "--shard", f"{n}/2", "--out", f"s{n}") for n in (1, 2)] == [0, 3]
    notes = VERDICT.load(Path("s1", "verdict.json")).notes
    assert Code.ONE_SHARD in [note.code for note in notes]
    assert place.run("merge", "s1/run.json", "--out", "one") == 2
    assert place.run("merge", "s1/run.json", "s2/run.json", "--out", "joined") == 0
    assert place.run("compare", "baselines", "joined/run.json") == 0
    assert "2 cases" in place.read().out


def begin_repository(place: Place, *files: str) -> None:
    """Commit the project, or these files of it, to ``main``."""
    place.git("init", "--quiet", "--initial-branch=main")
    chosen = files or ("gate.yml", "baselines")
    place.git("add", *chosen, *(["actor.py"] if "gate.yml" in chosen else []))
    place.git("commit", "--quiet", "--allow-empty", "--message", "Begin")


def begin_trunk(place: Place) -> None:
    """The same, to a branch whose name says nothing."""
    begin_repository(place)
    place.git("branch", "--move", "trunk")


def commit_fault(place: Place) -> None:
    """Commit a graph break to a branch that leaves ``main`` here."""
    place.git("checkout", "--quiet", "-b", "feature")
    place.plant("graph_break")
    place.git("add", "fault.json")
    place.git("commit", "--quiet", "--message", "Print")


def load_base(place: Place) -> tuple[str, int]:
    """What the last verdict was reached against, without the commit, and its number of pairs."""
    verdict = VERDICT.load(place.top / "out" / "verdict.json")
    return (verdict.base.label.partition(" (")[0] if verdict.base else ""), verdict.tally.pairs


def test_a_branch_is_compared_with_where_it_left_main(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody names it, and nothing needs to be stored; the last line says where the page is."""
    begin_repository(place, "gate.yml")
    shutil.rmtree("baselines")
    commit_fault(place)
    assert place.run("check", "--quiet") == ExitCode.REGRESSION
    assert capsys.readouterr().out.splitlines()[-1].startswith("page  ")
    assert load_base(place)[0] == "merge-base with main"
    assert place.run("check", "--quiet", "--no-base") == ExitCode.NOTHING_COMPARED
    assert load_base(place) == ("", 0)


def test_uncommitted_changes_of_main_are_compared_with_its_commit(place: Place) -> None:
    """What is committed there is the base; the baselines say what is worth a pair."""
    begin_repository(place, "gate.yml", "baselines")
    (place.top / "gate.yml").write_text(f"{CONFIG}# changed\n", encoding="utf-8")
    place.plant("graph_break")
    assert place.run("check", "--quiet") == ExitCode.REGRESSION
    assert load_base(place)[0] == "merge-base with main"


def test_an_unchanged_main_branch_leaves_no_verdict_of_another_run(place: Place) -> None:
    """It ends with 3, and the REGRESSION in `out` would be taken for its own; the measured run is kept."""
    begin_repository(place, "gate.yml")
    shutil.rmtree("baselines")
    commit_fault(place)
    assert place.run("check", "--quiet") == ExitCode.REGRESSION
    place.git("checkout", "--quiet", "main")
    assert place.run("check", "--quiet") == ExitCode.NOTHING_COMPARED
    assert sorted(path.name for path in Path("out").glob("*.*")) == [".gitignore", "run.json"]


def clone_shallowly(place: Place) -> None:
    """Work in a clone that has the branch's last commit, and not where it left ``main``."""
    begin_repository(place)
    commit_fault(place)
    place.git("checkout", "--quiet", "main")  # so that the clone knows it as the main branch
    source = place.top.rename(place.top.with_name("source"))
    command = ("clone", "--quiet", "--depth=1", "--no-single-branch", "--branch=feature", f"file://{source}")
    subprocess.run(("git", *command, str(place.top)), cwd=source.parent, check=True)
    os.chdir(place.top)


@pytest.mark.parametrize(
    ("begin", "code", "told"),
    [
        (lambda _place: None, ExitCode.PASS, "is not in a git repository. Run in a checkout"),
        (begin_repository, ExitCode.PASS, "nothing differs from main"),
        (
            begin_trunk,
            ExitCode.PASS,
            "cannot find out which branch is your main branch. Name it: `check --base BRANCH`",
        ),
        (
            lambda place: place.git("init", "--quiet"),
            ExitCode.PASS,
            "this repository has no commit yet. Commit what is there",
        ),
        (clone_shallowly, ExitCode.REGRESSION, "this shallow clone lacks the commit where HEAD left origin/"),
    ],
)
def test_without_a_base_the_stored_baselines_judge(
    place: Place, begin: Callable[[Place], object], code: ExitCode, told: str
) -> None:
    """One note says why, and what to do about it."""
    begin(place)
    assert place.run("check") == code
    notes = [line for line in place.read().err.splitlines() if "the stored baselines alone" in line]
    assert [line for line in notes if line.startswith("note: compared with the stored baselines alone: ")]
    assert told in notes[0]
    assert load_base(place) == ("", 0)


def test_the_change_that_brings_gate_yml_is_compared(place: Place) -> None:
    """The base's code is measured by the gate.yml and the factory that it lacks, and loses them again."""
    (place.top / "actor.py").write_text("", encoding="utf-8")
    begin_repository(place, "old.json")
    place.git("checkout", "--quiet", "-b", "feature")
    place.git("add", "gate.yml")
    place.git("commit", "--quiet", "--message", "Measure it")
    shutil.rmtree("baselines")
    place.plant("graph_break")
    assert place.run("check") == ExitCode.REGRESSION
    told = place.read().err
    assert "has no gate.yml: yours is used for both sides (gate.yml, actor.py)" in told
    assert re.search(r"^note: base: merge-base with main \(\w+\); head: working tree ", told, re.MULTILINE)
    assert place.run("ab", "main", "feature", "--quiet") == ExitCode.PASS
    assert load_base(place) == ("main", 3)


@pytest.mark.parametrize("command", ["check", "measure", "baseline refresh", "calibrate"])
def test_a_mistyped_factory_names_its_line(place: Place, command: str) -> None:
    """Before a lock is waited for, and nothing of the last run is removed."""
    (place.top / "actor.py").rename(place.top / "actors.py")
    assert place.run(*command.split(), "--quiet") == ExitCode.USAGE
    what, fix = place.read().err.splitlines()
    told = f"there is no module 'actor' in {place.top}, and none is installed"
    assert what == f"compile-gate: gate.yml:6: models[0].factory: {told}"
    assert fix.startswith("Check its spelling")


def test_a_check_that_can_compare_nothing_spends_no_minutes(place: Place) -> None:
    """On an unchanged main branch without baselines it says what to do instead; who asks gets the figures."""
    begin_repository(place, "gate.yml")
    shutil.rmtree("baselines")
    assert place.run("check") == ExitCode.NOTHING_COMPARED
    what, fix = place.read().err.splitlines()
    assert what.endswith("differs from main, and the directory baselines has no baseline of these cases")
    assert "add --base HEAD~1" in fix
    assert not (place.top / "out").exists()
    assert place.run("check", "--quiet", "--fail-on", "never") == ExitCode.PASS
    assert place.run("check", "--quiet", "--history", "runs.jsonl") == ExitCode.NOTHING_COMPARED
    assert (place.top / "runs.jsonl").is_file()
    place.read()
    assert place.run("check", "--no-base") == ExitCode.NOTHING_COMPARED
    notes = place.read().err.splitlines()
    said = next(index for index, line in enumerate(notes) if "nothing will be judged" in line)
    assert "leave out --no-base; to record baselines, `compile-gate baseline refresh`" in notes[said]
    assert said < next(index for index, line in enumerate(notes) if line.startswith("warming up"))


@pytest.mark.parametrize(
    "command", ["check", "ab", "measure", "baseline refresh", "selftest", "plan", "models"]
)
def test_without_a_gate_yml_nothing_is_measured(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """One directory too high is the commonest mistake there is: it costs no minutes."""
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
    """Whatever gate.yml says, and without a note."""
    monkeypatch.chdir(project)
    (project / "gate.yml").write_text("version: 9\n", encoding="utf-8")
    assert main(["plan", "--reference-models", "--format", "json"]) == ExitCode.PASS
    told = capsys.readouterr()
    assert ("bert/inference-float32-smoke-default" in told.out, told.err) == (True, "")


def test_results_ignore_themselves(place: Place) -> None:
    """After `git add --all` no result is a change, in a new directory or in one that was empty."""
    begin_repository(place, "gate.yml", "baselines", "old.json", "slow.json")
    (place.top / "kept").mkdir()
    assert [place.run("measure", "--quiet", "--out", out) for out in ("new/one", "kept")] == [0, 0]
    status = ("git", "status", "--porcelain", "--untracked-files=normal")
    changed = subprocess.run(status, cwd=place.top, check=True, capture_output=True, text=True).stdout
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
def test_another_run_is_not_continued_and_told_before_anything_is_opened(
    place: Place, begun: str, go_on: str, changed: str
) -> None:
    """With other options, or pairs where there were trials: before a lock is waited for."""
    begin_repository(place, "gate.yml", "baselines", "old.json", "slow.json")
    config = place.top / "gate.yml"
    text = config.read_text(encoding="utf-8")
    config.write_text(f"{text}# changed\n", encoding="utf-8")
    assert place.run(begun, "--quiet") == 0
    edits = {
        "sampling": ("super_blocks: 3", "super_blocks: 4"),
        "threads": ("version: 1", "version: 1\nthreads: 1"),
        "actor": ("build\n", "build\n    arguments: {width: 2}\n"),
    }
    edit = next(edit for key, edit in edits.items() if changed.startswith(key))
    config.write_text(text.replace(*edit), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "open_lab", lambda *_: pytest.fail("it goes on"))
        assert place.run(*go_on.split(), "--quiet", "--resume") == ExitCode.USAGE
    told = place.read().err
    assert "the saved run cannot be continued: " in told
    assert ("trials (`check`) -> pairs (`ab`)" in told) is (begun != go_on == "ab")
    assert changed in told


@pytest.mark.parametrize(
    ("go_on", "told"), [(("HEAD~2",), "base commit "), (("HEAD~2", "HEAD~1"), "commit ")]
)
def test_other_commits_are_told_before_anything_is_opened(
    place: Place, monkeypatch: pytest.MonkeyPatch, go_on: tuple[str, ...], told: str
) -> None:
    """Another base, or another head, than those of the run that was begun."""
    begin_repository(place, "gate.yml", "baselines")
    for number in range(2):
        place.git("commit", "--quiet", "--allow-empty", "--message", f"Change {number}")
    assert place.run("ab", "HEAD~1", "--quiet") == 0
    monkeypatch.setattr(lanes, "open_lab", lambda *_: pytest.fail("it goes on"))
    assert place.run("ab", *go_on, "--quiet", "--resume") == ExitCode.USAGE
    assert f"the saved run cannot be continued: {told}" in place.read().err


def test_results_are_not_written_among_other_files(place: Place) -> None:
    """A report would be written over what has its name; an empty directory and an earlier run's are taken."""
    source = place.top / "docs" / "report.md"
    source.parent.mkdir()
    source.write_text("mine\n", encoding="utf-8")
    for command in (("check",), ("compare", "old.json", "slow.json")):
        assert place.run(*command, "--quiet", "--out", "docs") == ExitCode.USAGE
        assert "--out: docs has files in it that compile-gate did not write" in place.read().err
    assert source.read_text(encoding="utf-8") == "mine\n"
    (place.top / "empty").mkdir()
    for out in ("empty", "empty", "new", "new"):
        assert place.run("measure", "--quiet", "--out", out) == 0
        (place.top / out / "run.json").unlink()  # as after a kill before anything was saved
    with (place.top / "gate.yml").open("a", encoding="utf-8") as file:
        file.write("out: docs\n")  # its owner says that results go there, and the action repeats that
    assert place.run("compare", "old.json", "old.json", "--quiet", "--out", "docs") == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_programs_is_an_interrupt(
    place: Place, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """A service manager's, and that of a lost terminal; but not where nohup has it ignored."""
    monkeypatch.setattr(opening, "check_disk", lambda _: signal.raise_signal(number))
    before = signal.signal(number, signal.SIG_DFL)  # the tests may be run by nohup
    try:
        assert place.run("measure", "--quiet") == ExitCode.INTERRUPTED
        assert signal.signal(number, signal.SIG_IGN) is signal.SIG_DFL
        assert place.run("measure", "--quiet") == ExitCode.PASS
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
    place: Place, fault: str, amount: float, arguments: tuple[str, ...], code: int
) -> None:
    """A slowdown of times is not seen then, and a note says so; a graph break is."""
    place.plant(fault, amount)
    assert place.run("check", "--no-base", "--quiet", *arguments) == code
    verdict = VERDICT.load(place.top / "out" / "verdict.json")
    has_times = any(SPECS[row.metric].scope is Scope.HOST for row in verdict.comparisons)
    is_said = any(note.code is Code.COUNTS_ONLY for note in verdict.notes)
    assert (has_times, is_said) == (not arguments, bool(arguments))


@pytest.mark.parametrize(
    ("cores", "problem"),
    [
        ("99999", "--cores: this process may not run on 99999"),
        (str(min(os.sched_getaffinity(0))), "--cores: 1 core for 2 threads"),
        ("a", "expected a list of cores, as 0-3,8, got 'a'"),
    ],
)
def test_cores_that_cannot_be_used_are_refused(place: Place, cores: str, problem: str) -> None:
    assert place.run("check", "--no-base", "--quiet", "--cores", cores) == 2
    assert problem in place.read().err


def test_a_run_stays_on_the_cores_that_were_named(place: Place) -> None:
    cores = write_cores(sorted(os.sched_getaffinity(0))[:2])
    with (place.top / "gate.yml").open("a", encoding="utf-8") as config:
        config.write("threads: 1\n")
    place.run("check", "--no-base", "--quiet", "--cores", cores)
    (ran_at,) = RUN.load(place.top / "out" / "run.json").places.values()
    assert ran_at.cores == cores


@pytest.mark.parametrize(("fault", "left"), [("slowdown", [0]), ("", [])])
def test_a_check_can_stop_at_the_first_regression(place: Place, fault: str, left: list[int]) -> None:
    """A note says how much was left open, and there is none where nothing regressed."""
    place.plant(fault, SLOWER_S)
    place.run("check", "--no-base", "--quiet", "-x")
    notes = VERDICT.load(place.top / "out" / "verdict.json").notes
    assert [note.numbers["comparisons"] for note in notes if note.code is Code.FAIL_FAST] == left
