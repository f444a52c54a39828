"""``bisect``: real git over commits of which one has a fault, with actors for workers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gate.cli import ab, bisect
from gate.files.codec import BISECTION
from gate.records import Metric
from gate.records.bisection import Mark
from tests.unit.cli.conftest import CASE_ID, CONFIG, Place

COMMITS = 5  # the first is good, and the fault comes with the fourth
FAULTY = 3


@pytest.fixture
def history(place: Place) -> Place:
    """A repository of five commits; from the fourth on there is a graph break."""
    place.git("init", "--quiet", "--initial-branch=main")
    (place.top / ".git/info/exclude").write_text("out/\n", encoding="utf-8")
    for number in range(COMMITS):
        (place.top / "notes.txt").write_text(f"{number}\n", encoding="utf-8")
        if number == FAULTY:
            place.plant("graph_break")
        place.git("add", "gate.yml", "notes.txt", *(["fault.json"] if number >= FAULTY else []))
        place.git("commit", "--quiet", "--message", f"Change {number}")
        place.git("tag", f"v{number}")
    return place


def read_commit(place: Place, name: str) -> str:
    """The id of a commit."""
    done = subprocess.run(
        ["git", "rev-parse", name], cwd=place.top, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def read_repository(place: Place) -> tuple[str, ...]:
    """What a user sees of their repository: status, branch, worktrees, refs, a bisection of their own."""
    told = []
    for command in ("status --short --branch", "worktree list --porcelain", "for-each-ref", "bisect log"):
        done = subprocess.run(
            ["git", *command.split()], cwd=place.top, check=False, capture_output=True, text=True
        )
        told.append(done.stdout)
    return tuple(told)


def test_the_first_bad_commit_is_found_and_the_checkout_is_left_alone(
    history: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of three commits between, two are asked about; a bisection of the user's own stays as it was."""
    history.git("remote", "add", "origin", "https://github.com/acme/models.git")
    history.git("bisect", "start", "--no-checkout", "v4", "v3")
    (history.top / "notes.txt").write_text("mine\n", encoding="utf-8")
    before = read_repository(history)
    assert history.run("bisect", CASE_ID, "--good", "v0", "--quiet") == 0
    told = capsys.readouterr().out
    commit = read_commit(history, "v3")
    assert "3 commits between: at most 2 steps and one to see it again" in told
    assert f"first bad: {commit[:7]} Change 3\n" in told
    assert f"[{commit[:7]} Change 3](https://github.com/acme/models/commit/{commit})" in told
    assert "graph breaks" in told
    state = BISECTION.load(history.top / "out/bisect/bisection.json")
    assert state.metric is Metric.GRAPH_BREAKS
    assert len(state.steps) == 2
    assert {step.mark for step in state.steps} == {Mark.GOOD, Mark.BAD}
    assert read_repository(history) == before
    assert (history.top / "out/bisect/first-bad/verdict.json").is_file()


def test_a_bisection_goes_on_where_it_was_stopped(
    history: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was marked is not asked about again; another question is refused."""
    arguments = ("bisect", CASE_ID, "graph_breaks", "--good", "v0", "--bad", "v4", "--quiet")
    asked: list[str] = []
    real = bisect.Bisector.ask

    def ask_once(self: bisect.Bisector, state: object, point: str) -> object:
        if asked:
            raise KeyboardInterrupt
        asked.append(point)
        return real(self, state, point)  # type: ignore[arg-type] # as it is called

    with monkeypatch.context() as patch:
        patch.setattr(bisect.Bisector, "ask", ask_once)
        assert history.run(*arguments) == 130
    capsys.readouterr()
    assert history.run(*arguments, "--resume") == 0
    steps = BISECTION.load(history.top / "out/bisect/bisection.json").steps
    assert steps[0].point == asked[0]
    assert len({step.point for step in steps}) == len(steps)
    assert history.run("bisect", CASE_ID, "graph_breaks", "--good", "v1", "--quiet", "--resume") == 2
    assert "is of another case, metric or ends" in capsys.readouterr().err


def test_commits_that_cannot_be_measured_are_left_as_candidates(
    history: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the case crashes at the commits around the fault, all that it may be are named, and it is 11."""
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
    told = capsys.readouterr().out
    assert "one of these 4" in told
    assert read_commit(history, "broken") in told


@pytest.mark.parametrize(
    ("good", "bad", "end"),
    [
        ("v3", "v4", (11, "nothing got worse that decides")),
        ("v0", "v0", (2, "--good and --bad are the same commit")),
        ("v4", "v0", (2, "was not made from")),
        ("nowhere", "v4", (2, "there is no branch, tag or commit")),
    ],
)
def test_ends_that_are_none_are_told(
    history: Place, capsys: pytest.CaptureFixture[str], good: str, bad: str, end: tuple[int, str]
) -> None:
    """A bad end that is not worse, one that is the good one, or before it, or not there."""
    assert history.run("bisect", CASE_ID, "--good", good, "--bad", bad, "--quiet") == end[0]
    printed = capsys.readouterr()
    assert end[1] in printed.out + printed.err


def test_ends_without_time_for_a_pair_are_not_called_equal(
    history: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hundredth of a second is over when the compiler is warm: that says nothing of the ends."""
    arguments = ("bisect", CASE_ID, "--good", "v0", "--quiet", "--minutes", "0.0001")
    assert history.run(*arguments) == 11
    told = capsys.readouterr().out
    assert "there was no time for a single pair" in told
    assert "nothing got worse" not in told


def test_an_end_that_crashes_is_incomplete(history: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is searched for: what fails at its end is another question."""
    history.plant("crash")
    history.git("commit", "--quiet", "--all", "--message", "Crash")
    assert history.run("bisect", CASE_ID, "--good", "v0", "--quiet") == 12
    assert "an end cannot be measured" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
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
    history: Place, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str
) -> None:
    """Before anything is measured."""
    config = CONFIG.replace("cases: [{", "cases: [{task: training}, {")
    (history.top / "gate.yml").write_text(config, encoding="utf-8")
    assert history.run("bisect", *arguments) == 2
    assert told in capsys.readouterr().err


def test_a_slowdown_among_noise_is_found(history: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """30 % of latencies that vary by 0.3 %, which no counter shows; the steps say by how much."""
    for number in range(3):
        text = {"fault": "slowdown" if number else "nothing", "dose": 0.003}
        (history.top / "fault.json").write_text(json.dumps(text), encoding="utf-8")
        (history.top / "notes.txt").write_text(f"late {number}\n", encoding="utf-8")
        history.git("commit", "--quiet", "--all", "--message", f"Late {number}")
    good = "HEAD~2"
    assert history.run("bisect", CASE_ID, "compiled_latency", "--good", good, "--quiet") == 0
    told = capsys.readouterr().out
    assert "first bad:" in told
    assert "Late 1\n" in told
    assert "bad " in told


def test_the_interpreters_of_a_list_are_points(
    history: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The same search over a list: which of them the workers were started with is what is held against."""
    pythons = [str(tmp_path / f"python{number}") for number in range(4)]
    for python in pythons:
        Path(python).symlink_to(sys.executable)
    compared: list[tuple[str, str]] = []
    real = ab.compare_arms

    def compare(options: object, project: object, policy: object, factor: object, previous: object) -> object:
        arms = factor.arms  # type: ignore[attr-defined] # a Factor
        compared.append((Path(arms.base_python).name, Path(arms.head_python).name))
        is_bad = (arms.base_python < pythons[2]) and arms.head_python >= pythons[2]
        there = factor.__class__(  # type: ignore[call-arg] # the same question, of commits
            name="",
            arms=arms.__class__(directory=arms.directory, base="v0", head="v3" if is_bad else "v1"),
            out=factor.out,  # type: ignore[attr-defined]
            suspects=factor.suspects,  # type: ignore[attr-defined]
        )
        return real(options, project, policy, there, previous)  # type: ignore[arg-type]

    monkeypatch.setattr(bisect, "compare_arms", compare)
    assert history.run("bisect", CASE_ID, "--quiet", "--pythons", *pythons) == 0
    assert f"first bad: {pythons[2]}\n" in capsys.readouterr().out
    assert compared[0] == ("python0", "python3")
    assert compared[-1] == ("python1", "python2")
