"""A step's command: how it ends, what is passed on of it, and what the runner is shown."""

import io
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from records import CASES, make_comparison
from runner_log import list_commands

from gate.action import step
from gate.action.base_commit import AcceptedFiles
from gate.action.inputs import ActionStep
from gate.action.rules import RuleSource
from gate.action.step import (
    Ended,
    clear_results,
    list_annotations,
    list_complaints,
    report_change,
    report_failure,
    report_rules,
    run_child,
    run_command,
    warn,
)
from gate.errors import ExitCode, UsageError
from gate.project.config import make_default_config
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.verdict import Cause, Comparison, Outcome, Reason, Status, Verdict
from gate.store.rules import BaseRules
from tests.git import run_git
from tests.make import make_failure, make_verdict

FIRST, SECOND, THIRD = CASES


@contextmanager
def buffer_output() -> Iterator[io.BytesIO]:
    """Yield what this process has written; its standard output keeps the rest until that is flushed."""
    stream = io.BytesIO()
    with redirect_stdout(io.TextIOWrapper(stream, encoding="utf-8", newline="\n")):
        yield stream


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("pass", 0),
        ("sys.exit(7)", 7),
        ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
        ("os.kill(os.getpid(), signal.SIGUSR1)", 128 + signal.SIGUSR1),  # which nohup leaves alone
    ],
)
def test_a_command_that_a_signal_ended_has_the_exit_code_of_a_shell(code: str, expected: int) -> None:
    """Any other exit code is the command's own."""
    command = [sys.executable, "-S", "-c", f"import os, signal, sys; {code}"]

    assert run_child(command, {}) == Ended(code=expected)


def test_what_was_printed_before_a_command_comes_before_what_it_prints(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The command writes to the same log; its errors are written at once, too."""
    before: list[bytes] = []
    popen = subprocess.Popen

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        before.append(written.getvalue())
        return popen(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", start)
    with buffer_output() as written:
        sys.stdout.write("first\n")

        run_child([sys.executable, "-S", "-c", "import sys; sys.stderr.write('second\\n')"], {})

        assert before == [b"first\n"]
        assert written.getvalue() == b"first\nsecond\n"


def test_a_process_that_a_command_leaves_behind_is_waited_for_five_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may keep the standard error open; it does not keep this process from ending."""
    readers: list[threading.Thread] = []
    waits: list[float | None] = []

    class Reader(threading.Thread):
        def start(self) -> None:
            readers.append(self)
            super().start()

        def join(self, timeout: float | None = None) -> None:
            waits.append(timeout)
            super().join()

    monkeypatch.setattr(threading, "Thread", Reader)

    run_child([sys.executable, "-S", "-c", ""], {})

    assert ([reader.daemon for reader in readers], waits) == ([True], [5.0])


@pytest.mark.parametrize(("count", "is_kept"), [(8, True), (9, False)])
def test_the_last_eight_chunks_of_what_a_command_says_are_searched_for_errors(
    monkeypatch: pytest.MonkeyPatch, count: int, is_kept: bool
) -> None:
    """The memory of a step does not grow with what measured code writes, nor is it read after the end."""
    events: list[threading.Event] = []

    def read(_: object, tail: deque[bytes], ended: threading.Event) -> None:
        events.append(ended)
        tail.extend([b"compile-gate: bad.\n", *[b"\n"] * (count - 1)])

    monkeypatch.setattr(step, "_pass_on", read)

    ended = run_child([sys.executable, "-S", "-c", ""], {})

    assert ended.complaints == (("bad.",) if is_kept else ())
    assert [event.is_set() for event in events] == [True]


def pass_on(path: Path, content: bytes, *, has_ended: bool = False) -> deque[bytes]:
    """Pass on a file's content, and return the chunks that were read."""
    path.write_bytes(content)
    tail: deque[bytes] = deque()
    ended = threading.Event()
    if has_ended:
        ended.set()
    with path.open("rb") as file:
        step._pass_on(file, tail, ended)
    return tail


def test_a_character_between_two_chunks_is_passed_on_whole(tmp_path: Path) -> None:
    """A chunk has 64 KiB; bytes that are no text are shown as such, and end nothing."""
    start = "x" * (64 * 1024 - 1)

    with buffer_output() as written:
        tail = pass_on(tmp_path / "log", f"{start}\u00e9".encode() + b"\xff!")

        assert [len(chunk) for chunk in tail] == [64 * 1024, 3]
        assert written.getvalue().decode() == f"{start}\u00e9\ufffd!"


def test_after_the_command_nothing_more_is_passed_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it left behind could write commands to the runner; nor does a closed stream matter."""
    assert pass_on(tmp_path / "log", b"late\n", has_ended=True) == deque()

    file = (tmp_path / "log").open("rb")
    file.close()
    step._pass_on(file, deque(), threading.Event())

    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("what", "joined"),
    [
        ("it is wrong", "it is wrong. Fix it."),
        ("it is wrong.", "it is wrong. Fix it."),
        ("it is wrong!", "it is wrong! Fix it."),
        ("is it?", "is it? Fix it."),
        ("several are wrong:", "several are wrong: Fix it."),
    ],
)
def test_an_error_and_its_fix_are_two_sentences(what: str, joined: str) -> None:
    """Lines before the first error, and empty ones, are none of it."""
    lines = ("Warming up", "compile-gate: before", f"  compile-gate baseline accept: {what} ", "", " Fix it.")

    assert list_complaints("\n".join(lines)) == ("before", joined)


def make_step(tmp_path: Path, mode: str = "check", token: str = "") -> ActionStep:
    environ = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary"), "INPUT_TOKEN": token, "HOME": "/root"}
    return ActionStep(inputs={"mode": mode, "token": token}, environ=environ, event={})


@pytest.mark.parametrize(("mode", "is_guarded"), [("check", True), ("plan", True), ("publish", False)])
def test_only_what_runs_foreign_code_has_its_commands_stopped(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    mode: str,
    is_guarded: bool,
) -> None:
    """What holds a token guards its own output, and is given the token."""
    started: list[tuple[list[str], dict[str, str]]] = []

    def run(command: list[str], environment: dict[str, str]) -> Ended:
        sys.stdout.write("::error::x\n")
        started.append((command[4:], environment))
        return Ended(code=5)

    monkeypatch.setattr(step, "run_child", run)

    assert run_command(make_step(tmp_path, mode, "ghs_x"), ("plan", "-v")) == Ended(code=5)
    sys.stdout.write("::notice::y\n")
    first, second = list_commands(capsys.readouterr().out)
    assert (first.name, second.name) == ("stop-commands" if is_guarded else "error", "notice")
    assert len(first.data) == (32 if is_guarded else 1)
    ((command, environment),) = started
    assert command == ["gate", "plan", "-v"]
    assert environment.get("GITHUB_TOKEN") == (None if is_guarded else "ghs_x")
    assert "INPUT_TOKEN" not in environment


@pytest.mark.parametrize(
    "name", ["verdict.json", "shown.json", "run.json", "report.md", "report.html", "junit.xml"]
)
def test_every_result_of_an_earlier_run_is_removed(tmp_path: Path, name: str) -> None:
    """What is no result stays; one that cannot be removed is named."""
    (tmp_path / "other.txt").touch()
    (tmp_path / name).touch()

    clear_results(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["other.txt"]
    (tmp_path / name).mkdir()
    with pytest.raises(UsageError, match=f"{tmp_path / name} cannot be replaced"):
        clear_results(tmp_path)


def make_slower(count: int) -> tuple[Comparison, ...]:
    row = make_comparison(FIRST, Metric.COMPILED_LATENCY, Status.REGRESSED, Reason.BEYOND_BAR, (0.01, 0.02))
    return tuple(replace(row, case_id=f"m{index}/test") for index in range(count))


def annotate(verdict: Verdict, measured: Path, code: int) -> list[tuple[str, str]]:
    """List the level and the properties of each annotation."""
    commands = list_commands("\n".join(list_annotations(verdict, measured, code)))
    return [(command.name, command.properties) for command in commands]


@pytest.mark.parametrize(
    ("code", "outcome", "levels"),
    [
        (0, Outcome.PASS, ["notice", "warning"]),
        (0, Outcome.INCONCLUSIVE, ["warning", "warning"]),
        (0, Outcome.REGRESSION, ["warning", "warning"]),
        (3, Outcome.NOTHING_COMPARED, ["error", "warning"]),
        (10, Outcome.REGRESSION, ["error", "error"]),
        (11, Outcome.INCONCLUSIVE, ["error", "warning"]),
        (12, Outcome.INCOMPLETE, ["error", "error"]),
    ],
)
def test_only_what_fails_the_step_is_an_error(
    tmp_path: Path, code: int, outcome: Outcome, levels: list[str]
) -> None:
    """A green job shows none; in a red one, what is not why it is red is a warning."""
    verdict = make_verdict(*make_slower(1), outcome=outcome)

    assert [level for level, _ in annotate(verdict, tmp_path, code)] == levels


@pytest.mark.parametrize(("count", "shown", "more"), [(7, 7, ""), (8, 7, "1 more"), (12, 7, "5 more")])
def test_beyond_seven_changes_an_annotation_counts_the_others(
    tmp_path: Path, count: int, shown: int, more: str
) -> None:
    """With the headline and the count these are nine: GitHub shows no more than ten of a step."""
    verdict = make_verdict(*make_slower(count), outcome=Outcome.REGRESSION)

    lines = list(list_annotations(verdict, tmp_path, ExitCode.REGRESSION))

    titles = [f"::error title=compile-gate%3A m{index}/test compiled_latency::" for index in range(shown)]
    assert [
        line.partition("::c")[0][: len(title)] for line, title in zip(lines[1:], titles, strict=False)
    ] == titles
    rest = lines[1 + shown :]
    assert rest == ([f"::error title=compile-gate::The job summary has {more}."] if more else [])


def test_what_is_quarantined_or_not_worse_has_no_annotation(tmp_path: Path) -> None:
    """Neither a regression nor a failure that does not decide is shown, nor a retried one."""
    slower, better = make_slower(2)
    apart = make_comparison(SECOND, Metric.DRIFT, Status.FAILED, Reason.CASE_FAILED)
    rows = (
        replace(slower, decides=False),
        replace(better, status=Status.IMPROVED),
        replace(apart, decides=False),
    )
    verdict = make_verdict(
        *rows,
        outcome=Outcome.PASS,
        failures=tuple(map(make_failure, (SECOND.id, THIRD.id, better.case_id))),
    )

    assert [level for level, _ in annotate(verdict, tmp_path, 0)] == ["notice"]


def test_each_case_that_failed_is_annotated_once(tmp_path: Path) -> None:
    """By its first failure, before what regressed; a case may fail in every trial."""
    failed = make_comparison(SECOND, Metric.DRIFT, Status.FAILED, Reason.CASE_FAILED)
    missing = replace(failed, case_id=THIRD.id, status=Status.MISSING)
    failures = (
        make_failure(SECOND.id, "first", trial=1),
        make_failure(SECOND.id, "second", trial=2),
        make_failure(THIRD.id, "third"),
    )
    verdict = make_verdict(*make_slower(1), failed, missing, outcome=Outcome.INCOMPLETE, failures=failures)

    lines = list(list_annotations(verdict, tmp_path, ExitCode.INCOMPLETE))[1:]

    assert [line.partition("%3A ")[2].partition("::")[0] for line in lines] == [
        SECOND.id,
        THIRD.id,
        "m0/test compiled_latency",
    ]
    assert "first" in lines[0]


@pytest.mark.parametrize(
    ("metric", "code"),
    [
        (Metric.GRAPH_BREAKS, Code.GRAPH_BREAK),
        (Metric.RECOMPILES, Code.RECOMPILED),
        (Metric.MEMORY_GROWTH, Code.MEMORY_KEPT),
    ],
)
def test_a_regression_is_shown_on_the_first_line_that_explains_it(
    tmp_path: Path, metric: Metric, code: Code
) -> None:
    """A line of another case, of another metric or of no file of the clone is not that."""
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).touch()
    row = make_comparison(FIRST, metric, Status.REGRESSED, Reason.BEYOND_BAR, (1, 2))
    other = Code.RECOMPILED if code is Code.GRAPH_BREAK else Code.GRAPH_BREAK
    causes = tuple(
        Cause(case_id=case.id, fact=Fact(code=code, names=name_words(location=location)))
        for case, code, location in (
            (SECOND, code, "a.py:1"),
            (FIRST, other, "a.py:2"),
            (FIRST, code, "nowhere.py:3"),
            (FIRST, code, "b.py:4"),
            (FIRST, code, "c.py:5"),
        )
    )
    verdict = make_verdict(row, outcome=Outcome.REGRESSION, causes=causes)

    (_, headline), (_, properties) = annotate(verdict, tmp_path, ExitCode.REGRESSION)

    assert headline == "title=compile-gate"
    assert properties == f"title=compile-gate%3A {FIRST.id} {metric},file=b.py,line=4"


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("model.py:7", "model.py:7"),
        ("sub/../model.py:7", "model.py:7"),
        ("model.py:x", ""),
        ("model.py:", ""),
        ("sub:7", ""),
        (":7", ""),
        ("../outside.py:7", ""),
    ],
)
def test_a_location_is_a_line_of_a_file_below_what_was_measured(
    tmp_path: Path, location: str, expected: str
) -> None:
    """Measured code chose the words: they may be no line, or lead elsewhere."""
    measured = tmp_path / "work"
    (measured / "sub").mkdir(parents=True)
    (measured / "model.py").touch()
    (tmp_path / "outside.py").touch()

    assert step._find_location(location, measured) == expected


def test_a_location_is_named_from_the_top_of_the_checkout(tmp_path: Path) -> None:
    """What was measured may lie below; a file beside it is one of the checkout all the same."""
    run_git(tmp_path, "init", "--quiet")
    (tmp_path / "perf").mkdir()
    for name in ("perf/model.py", "other.py"):
        (tmp_path / name).touch()

    locations = [step._find_location(name, tmp_path / "perf") for name in ("model.py:7", "../other.py:8")]

    assert locations == ["perf/model.py:7", "other.py:8"]


@pytest.mark.parametrize(
    ("sha", "origin", "mended", "printed"),
    [
        ("", "unused", "", ["a note"]),
        ("b" * 40, "", "", [f"Configuration and baselines are those of commit {'b' * 40}.", "a note"]),
        (
            "b" * 40,
            "why",
            "",
            [f"Configuration and baselines are those of commit {'b' * 40}: why.", "a note"],
        ),
        ("", "", "gate.yml: is broken.", ["a note", "gate.yml: is broken."]),
    ],
)
def test_the_log_says_by_which_rules_a_step_judges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sha: str, origin: str, mended: str, printed: list[str]
) -> None:
    """The commit and how it was found, what was accepted, and what a change mends."""
    rules = BaseRules(config=make_default_config(), cases=(), sha=sha, mended=mended)
    source = RuleSource(
        rules=rules, origin=origin, accepted=AcceptedFiles(notes=("a note",), warnings=("a warning",))
    )

    report_rules(make_step(tmp_path), source)

    assert capsys.readouterr().out.splitlines() == [*printed, "::warning title=compile-gate::a warning"]
    assert (tmp_path / "summary").read_text() == "> a warning\n"


@pytest.mark.parametrize(
    ("changed", "sha", "workflows", "levels"),
    [
        ((), "", (), []),
        ((), "b" * 40, ("g.yml",), ["warning"]),
        (("gate.yml",), "b" * 40, (), ["warning"]),
        (("gate.yml",), "b" * 40, ("g.yml",), ["warning", "warning"]),
        (("gate.yml",), "", ("g.yml",), ["notice"]),
    ],
)
def test_a_change_is_warned_of_what_it_touches(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    changed: tuple[str, ...],
    sha: str,
    workflows: tuple[str, ...],
    levels: list[str],
) -> None:
    """Of rules and of workflows; a change that brings both gets one notice."""
    rules = BaseRules(config=make_default_config(), cases=(), changed=changed, sha=sha)

    report_change(make_step(tmp_path), RuleSource(rules=rules, workflows=workflows))

    assert [command.name for command in list_commands(capsys.readouterr().out)] == levels


def test_of_many_workflows_that_a_change_touches_five_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are counted."""
    rules = BaseRules(config=make_default_config(), cases=())
    names = tuple(f".github/workflows/{name}.yml" for name in "abcdefg")

    report_change(make_step(tmp_path), RuleSource(rules=rules, workflows=names))

    printed = capsys.readouterr().out
    assert f"touches {', '.join(names[:5])}" in printed
    assert "2 more" in printed
    assert "f.yml" not in printed


@pytest.mark.parametrize(
    ("code", "complaints", "texts"),
    [
        (0, ("unused",), []),
        (2, ("first", "second"), ["first", "second"]),
        (12, ("first",), ["first"]),
        (12, (), ["Not every case could be measured; the log names those that failed."]),
        (137, (), ["compile-gate ended with exit code 137; see the log."]),
    ],
)
def test_a_command_that_failed_is_annotated_with_its_errors(
    capsys: pytest.CaptureFixture[str], code: int, complaints: tuple[str, ...], texts: list[str]
) -> None:
    """Or with how it ended, where it said nothing."""
    assert report_failure(Ended(code=code, complaints=complaints)) == code
    commands = list_commands(capsys.readouterr().out)
    assert [(command.name, command.data) for command in commands] == [("error", text) for text in texts]


def test_a_warning_in_the_summary_has_no_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It may quote a path of the change; the log has it as it is."""
    warn(make_step(tmp_path), "a_b/[c](d)*.py: <img>`x`, 'y'; 1", "notice")

    assert (tmp_path / "summary").read_text() == "> a_b/?c?(d)?.py: ?img??x?, 'y'; 1\n"
    assert capsys.readouterr().out == "::notice title=compile-gate::a_b/[c](d)*.py: <img>`x`, 'y'; 1\n"


def test_a_summary_that_cannot_be_written_is_an_error_in_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The warning itself is in the log all the same."""
    (tmp_path / "summary").mkdir()

    warn(make_step(tmp_path), "text")

    names = [command.name for command in list_commands(capsys.readouterr().out)]
    assert names == ["warning", "error"]
