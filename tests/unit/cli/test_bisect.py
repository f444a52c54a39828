"""``bisect``: real git on commits of which one has a fault, with actors for workers."""

import json
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from gate.bisect import command as bisect
from gate.bisect import points
from gate.bisect.points import Ends
from gate.check.measurer import LaneMeasurer
from gate.decide.suspects import Suspect
from gate.files.codec import BISECTION, RUN
from gate.lab.arms.arms import ArmSource, open_arm
from gate.lab.arms.interpreter import ForeignInterpreter
from gate.records.cases import Metric
from gate.records.run import Run
from gate.records.studies import Mark
from tests.unit.cli.conftest import CASE_ID, CONFIG, Sandbox

COMMITS = 5  # the first is good, and the fault comes with the fourth
FAULTY = 3


@pytest.fixture
def history(sandbox: Sandbox) -> Sandbox:
    """A repository of five commits; from the fourth on there is a graph break."""
    sandbox.git("init", "--quiet", "--initial-branch=main")
    (sandbox.top / ".git/info/exclude").write_text("out/\n", encoding="utf-8")
    for number in range(COMMITS):
        (sandbox.top / "notes.txt").write_text(f"{number}\n", encoding="utf-8")
        if number == FAULTY:
            sandbox.plant("graph_break")
        sandbox.git("add", "gate.yml", "notes.txt", *(["fault.json"] if number >= FAULTY else []))
        sandbox.git("commit", "--quiet", "--message", f"Change {number}")
        sandbox.git("tag", f"v{number}")
    return sandbox


def read_repository(sandbox: Sandbox) -> tuple[str, ...]:
    """The user's view of the repository: status, branch, worktrees, refs and their own bisection."""
    commands = ("status --short --branch", "worktree list --porcelain", "for-each-ref", "bisect log")
    return tuple(sandbox.git(*command.split(), check=False) for command in commands)


def test_the_first_bad_commit_is_found_and_the_checkout_is_left_alone(history: Sandbox) -> None:
    """Two of three commits between are measured; a bisection of the user's own stays."""
    history.git("bisect", "start", "--no-checkout", "v4", "v3")
    (history.top / "notes.txt").write_text("mine\n", encoding="utf-8")
    before = read_repository(history)
    assert history.run("bisect", CASE_ID, "--good", "v0", "--quiet") == 0
    output = history.read().out
    commit = history.git("rev-parse", "v3")
    assert "3 commits between: at most 2 steps and one to see it again" in output
    assert f"first bad: {commit[:7]} Change 3\n" in output
    assert "graph breaks" in output
    state = BISECTION.load(history.top / "out/bisect/bisection.json")
    assert state.metric is Metric.GRAPH_BREAKS
    assert len(state.steps) == 2
    assert {step.mark for step in state.steps} == {Mark.GOOD, Mark.BAD}
    assert read_repository(history) == before
    assert (history.top / "out/bisect/first-bad/verdict.json").is_file()


def test_a_bisection_goes_on_where_it_was_stopped(history: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marked commits are not measured again; other arguments are refused."""
    arguments = ("bisect", CASE_ID, "graph_breaks", "--good", "v0", "--bad", "v4", "--quiet")
    asked: list[str] = []
    real = bisect.Bisector.ask

    def ask_once(self: bisect.Bisector, point: str) -> Mark | None:
        if asked:
            raise KeyboardInterrupt
        asked.append(point)
        return real(self, point)

    with monkeypatch.context() as patch:
        patch.setattr(bisect.Bisector, "ask", ask_once)
        assert history.run(*arguments) == 130
    history.read()
    assert history.run(*arguments, "--resume") == 0
    steps = BISECTION.load(history.top / "out/bisect/bisection.json").steps
    assert steps[0].point == asked[0]
    assert len({step.point for step in steps}) == len(steps)
    assert history.run("bisect", CASE_ID, "graph_breaks", "--good", "v1", "--quiet", "--resume") == 2
    assert "is of another case, metric or ends" in history.read().err


def commit_faults(sandbox: Sandbox, *faults: str) -> str:
    """Commit each fault; return the good end's name."""
    for number, fault in enumerate(faults):
        (sandbox.top / "fault.json").write_text(json.dumps({"fault": fault, "amount": 0.0}), encoding="utf-8")
        (sandbox.top / "notes.txt").write_text(f"fault {number}\n", encoding="utf-8")
        sandbox.git("commit", "--quiet", "--all", "--message", f"Fault {number}")
    return f"HEAD~{len(faults) - 1}"


def test_the_commit_that_broke_a_case_is_found(history: Sandbox) -> None:
    """The first of three commits that crash is found."""
    good = commit_faults(history, "nothing", "nothing", "crash", "crash", "crash")
    assert history.run("bisect", CASE_ID, "--good", good, "--quiet") == 0
    printed = history.read().out
    assert f"first bad: {history.git('rev-parse', 'HEAD~2')[:7]} Fault 2\n" in printed
    state = BISECTION.load(history.top / "out/bisect/bisection.json")
    assert (state.metric, {step.mark for step in state.steps}) == (None, {Mark.GOOD, Mark.BAD})
    assert history.run("bisect", CASE_ID, "graph_breaks", "--good", good, "--quiet") == 12


def test_a_commit_that_fails_otherwise_hides_what_is_searched_for(history: Sandbox) -> None:
    """A commit between good and crashing ones fails in another way: either may be the first bad one."""
    good = commit_faults(history, "nothing", "not_a_number", "crash")
    assert history.run("bisect", CASE_ID, "--good", good, "--quiet") == 11
    assert "it is one of these 2" in history.read().out
    (step,) = BISECTION.load(history.top / "out/bisect/bisection.json").steps
    assert step.mark is Mark.SKIP


def commit_slowdown(sandbox: Sandbox) -> str:
    """Commit three times, the second with a slowdown of latencies that vary by 0.3 %; return the good end."""
    for number in range(3):
        text = {"fault": "slowdown" if number else "nothing", "amount": 0.003}
        (sandbox.top / "fault.json").write_text(json.dumps(text), encoding="utf-8")
        (sandbox.top / "notes.txt").write_text(f"late {number}\n", encoding="utf-8")
        sandbox.git("commit", "--quiet", "--all", "--message", f"Late {number}")
    return "HEAD~2"


def test_a_step_that_is_stopped_keeps_its_pairs(history: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step is stopped after one pair, goes on with the second, and counts once."""
    good = commit_slowdown(history)
    path = history.top / "out/bisect" / history.git("rev-parse", "HEAD~1")[:12] / "run.json"
    arguments = ("bisect", CASE_ID, "compiled_latency", "--good", good, "--quiet")
    real = LaneMeasurer.add_pairs

    def add_once(self: LaneMeasurer, run: Run, needs: Sequence[Suspect], limit_s: float) -> Run:
        if path.is_file():
            raise KeyboardInterrupt
        return real(self, run, needs, limit_s)

    with monkeypatch.context() as patch:
        patch.setattr(LaneMeasurer, "add_pairs", add_once)
        assert history.run(*arguments) == 130
    before = RUN.load(path)
    assert [trial.index for trial in before.trials] == [1, 1]
    history.read()
    assert history.run(*arguments, "--resume") == 0
    after = RUN.load(path)
    assert after.trials[:2] == before.trials
    (marked,) = BISECTION.load(history.top / "out/bisect/bisection.json").steps
    assert marked.pairs * 2 == len(after.trials)
    assert "1 commit between" in history.read().out


def test_a_search_whose_time_is_up_shows_how_to_go_on(
    history: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step without time is not counted: --resume finds the commit."""
    arguments = ("bisect", CASE_ID, "graph_breaks", "--good", "v0", "--quiet")
    with monkeypatch.context() as patch:
        patch.setattr(bisect, "settle_step", lambda pairs, _judge: (pairs.run, None))
        assert history.run(*arguments) == 11
    output = history.read().out
    assert "the time of --minutes is up after 0 steps, at most 2 steps left" in output
    assert history.run(*arguments, "--resume") == 0
    assert "Change 3\n" in history.read().out


def test_a_new_search_takes_nothing_from_an_older_one(
    history: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search from another good end leaves no file of the older one."""
    assert history.run("bisect", CASE_ID, "graph_breaks", "--good", "v0", "--quiet") == 0

    def stop(_self: bisect.Bisector, _point: str) -> Mark | None:
        raise KeyboardInterrupt

    arguments = ("bisect", CASE_ID, "graph_breaks", "--good", "v1", "--quiet")
    with monkeypatch.context() as patch:
        patch.setattr(bisect.Bisector, "ask", stop)
        assert history.run(*arguments) == 130
    assert [path.parent.name for path in (history.top / "out/bisect").glob("*/run.json")] == ["ends"]
    assert not [path for path in (history.top / "out/bisect/first-bad").iterdir() if path.is_file()]
    assert history.run(*arguments, "--resume") == 0
    assert "Change 3\n" in history.read().out


def test_a_commit_whose_configuration_is_broken_is_skipped(history: Sandbox) -> None:
    """Of two commits between, the first cannot be read: both remain candidates."""
    history.git("checkout", "--quiet", "-b", "odd", "v2")
    good_config = (history.top / "gate.yml").read_text(encoding="utf-8")
    for number, config in enumerate(["version: 99\n", good_config, good_config]):
        (history.top / "gate.yml").write_text(config, encoding="utf-8")
        (history.top / "notes.txt").write_text(f"odd {number}\n", encoding="utf-8")
        if number == 1:
            history.plant("graph_break")
            history.git("add", "fault.json")
        history.git("commit", "--quiet", "--all", "--message", f"Odd {number}")
    assert history.run("bisect", CASE_ID, "graph_breaks", "--good", "v2", "--quiet") == 11
    output = history.read().out
    assert "one of these 2" in output
    assert "Odd 0: not measured (" in output
    assert "gate.yml:1: version: " in output


def test_a_pattern_means_the_case_that_it_fits_now_at_every_commit(history: Sandbox) -> None:
    """Older commits have a second case that the pattern fits; the search keeps to the first."""
    now = (history.top / "gate.yml").read_text(encoding="utf-8")
    two = now.replace("cases: [{", "cases: [{task: training}, {")
    assert two != now
    for number, text in enumerate((two, two, two, now)):
        (history.top / "gate.yml").write_text(text, encoding="utf-8")
        (history.top / "fault.json").write_text(
            json.dumps({"fault": "graph_break" if number > 1 else "nothing", "amount": 0.0}), encoding="utf-8"
        )
        (history.top / "notes.txt").write_text(f"two {number}\n", encoding="utf-8")
        history.git("commit", "--quiet", "--all", "--message", f"Two {number}")
    assert history.run("bisect", "*", "graph_breaks", "--good", "HEAD~3", "--quiet") == 0
    assert "Two 2\n" in history.read().out
    runs = [RUN.load(path) for path in (history.top / "out/bisect").glob("*/run.json")]
    assert {case.id for run in runs for case in run.cases} == {CASE_ID}


def test_a_step_that_cannot_be_saved_is_no_commit_to_skip(history: Sandbox) -> None:
    """The error ends the search, and the commit is measured again."""
    step = history.top / "out/bisect" / history.git("rev-parse", "v2")[:12]
    step.parent.mkdir(parents=True)
    step.write_text("in the way", encoding="utf-8")
    arguments = ("bisect", CASE_ID, "graph_breaks", "--good", "v0", "--quiet")
    assert history.run(*arguments) == 2
    assert str(step.name) in history.read().err
    assert BISECTION.load(history.top / "out/bisect/bisection.json").steps == ()
    step.unlink()
    assert history.run(*arguments, "--resume") == 0


def test_an_interpreter_keeps_its_directory_in_a_longer_list() -> None:
    """With --resume it reads its own run, although another interpreter was added before it."""
    short = Ends(directory=Path(), good="a", bad="c", pythons=("a", "c"))
    longer = replace(short, pythons=("a", "b", "c"))
    assert short.name_directory("c") == longer.name_directory("c") != longer.name_directory("b")
    assert longer.name_directory("c").startswith("python-")


def test_commits_that_cannot_be_measured_are_left_as_candidates(history: Sandbox) -> None:
    """The case crashes around the fault: all candidates are named, and the exit code is 11."""
    good, bad = "v2", "main"
    history.git("checkout", "--quiet", "-b", "broken", good)
    for number in range(3):
        history.plant("crash")
        (history.top / "notes.txt").write_text(f"broken {number}\n", encoding="utf-8")
        history.git("add", "fault.json", "notes.txt")
        history.git("commit", "--quiet", "--message", f"Broken {number}")
    history.plant("graph_break")
    history.git("add", "fault.json")
    history.git("commit", "--quiet", "--message", "Bad")
    history.git("branch", "--force", bad)
    assert history.run("bisect", CASE_ID, "--good", good, "--bad", "broken", "--quiet") == 11
    output = history.read().out
    assert "one of these 4" in output
    assert f"  {history.git('rev-parse', 'broken')[:7]} Bad\n" in output


@pytest.mark.parametrize(
    ("good", "bad", "end"),
    [
        ("v3", "v4", (11, "nothing got worse that decides")),
        ("v0", "v0", (2, "--good and --bad are the same commit")),
        ("v4", "v0", (2, "was not made from")),
        ("nowhere", "v4", (2, "there is no branch, tag or commit")),
    ],
)
def test_ends_that_are_none_are_reported(history: Sandbox, good: str, bad: str, end: tuple[int, str]) -> None:
    """The bad end is not worse, is the good one, comes before it, or does not exist."""
    assert history.run("bisect", CASE_ID, "--good", good, "--bad", bad, "--quiet") == end[0]
    printed = history.read()
    assert end[1] in printed.out + printed.err


def test_ends_without_time_for_a_pair_are_not_called_equal(history: Sandbox) -> None:
    """A hundredth of a second ends during the priming, and shows nothing of the ends."""
    arguments = ("bisect", CASE_ID, "--good", "v0", "--quiet", "--minutes", "0.0001")
    assert history.run(*arguments) == 11
    output = history.read().out
    assert "there was no time for a single pair" in output
    assert "nothing got worse" not in output


def test_a_good_end_that_crashes_is_incomplete(history: Sandbox) -> None:
    """No later commit can be the first that fails."""
    good = commit_faults(history, "crash", "nothing")
    assert history.run("bisect", CASE_ID, "--good", good, "--quiet") == 12
    assert "an end cannot be measured" in history.read().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("*", "--good", "v0"), "is 2 cases, and a bisection is of one"),
        ((CASE_ID, "guards", "--good", "v0"), "'guards' is no metric that decides"),
        ((CASE_ID,), "nothing says what is good"),
        ((CASE_ID, "--pythons", "python3"), "--pythons names no list"),
        (("--pythons", "a", "b", CASE_ID), "CASE: none is named"),
        ((CASE_ID, "--good", "v0", "--pythons", "a", "b"), "say it twice"),
    ],
)
def test_a_question_that_is_none_is_refused(
    history: Sandbox, arguments: tuple[str, ...], message: str
) -> None:
    """Before anything is measured."""
    config = CONFIG.replace("cases: [{", "cases: [{task: training}, {")
    (history.top / "gate.yml").write_text(config, encoding="utf-8")
    assert history.run("bisect", *arguments) == 2
    assert message in history.read().err


def test_a_slowdown_among_noise_is_found(history: Sandbox) -> None:
    """30 % of latencies that vary by 0.3 %, which no counter shows."""
    good = commit_slowdown(history)
    assert history.run("bisect", CASE_ID, "compiled_latency", "--good", good, "--quiet") == 0
    output = history.read().out
    assert "first bad:" in output
    assert "Late 1\n" in output
    assert "bad " in output


def test_the_interpreters_of_a_list_are_points(
    history: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The search over a list compares the interpreters that the workers were started with."""
    pythons = [str(tmp_path / f"python{number}") for number in range(4)]
    for python in pythons:
        Path(python).symlink_to(sys.executable)
    opened: list[tuple[str, str]] = []
    real = open_arm

    def prepare(python: str, _option: str, _place: Path) -> ForeignInterpreter:
        return ForeignInterpreter(python=python, torch="2.13.0", variables={})

    def open_other(
        name: str, directory: Path, ref: str, interpreter: ForeignInterpreter
    ) -> AbstractContextManager[ArmSource]:
        assert not ref
        opened.append((name, Path(interpreter.python).name))
        return real(name, directory, "v3" if interpreter.python >= pythons[2] else "v1", None)

    monkeypatch.setattr(points, "prepare_interpreter", prepare)
    monkeypatch.setattr(points, "open_arm", open_other)
    assert history.run("bisect", CASE_ID, "--quiet", "--pythons", *pythons) == 0
    assert f"first bad: {pythons[2]}\n" in history.read().out
    assert opened == [
        ("base", "python0"),  # once for the ends and all steps
        ("head", "python3"),
        ("head", "python1"),
        ("head", "python2"),
        ("base", "python1"),
        ("head", "python2"),
    ]
