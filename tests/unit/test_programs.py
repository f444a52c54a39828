"""Other programs and their time limits."""

import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from gate import programs
from gate.programs import ProgramAnswer, TimeLimit, TimeUse, ask_program, read_cpu_s

LIMIT_S = 60.0


def test_a_program_gets_input_directory_and_variables(tmp_path: Path) -> None:
    """Output, errors and status are returned separately."""
    code = "import os, sys; print(input(), os.getcwd(), os.environ['A']); sys.exit('no')"
    command = [sys.executable, "-c", code]
    answer = ask_program(command, limit_s=LIMIT_S, given=b"in", directory=tmp_path, variables={"A": "b"})
    assert answer == ProgramAnswer(status=1, raw=f"in {tmp_path.resolve()} b\n".encode(), err="no\n")
    assert not answer.output


def test_a_program_that_is_missing_is_a_problem_and_no_exception() -> None:
    answer = ask_program(["/no/such/program"], limit_s=LIMIT_S)
    assert answer == ProgramAnswer(problem="cannot be run: No such file or directory")


def ask_shell(script: str, limit_s: float) -> ProgramAnswer:
    return ask_program(["/bin/sh", "-c", script], limit_s=limit_s, given=b"in")


def test_a_program_that_waits_past_the_limit_is_waited_for() -> None:
    """It ends within four times the limit by the clock, with its output."""
    assert ask_shell("sleep 1; cat", 0.5) == ProgramAnswer(status=0, raw=b"in")


def test_a_program_that_hangs_is_ended_with_what_it_started() -> None:
    """It used no CPU time after its limit."""
    begun = time.monotonic()
    answer = ask_shell("sleep 61.5 & sleep 61.5", 0.5)
    assert 2.0 <= time.monotonic() - begun < LIMIT_S
    assert (answer.is_late, answer.status) == (True, -1)
    assert answer.problem.startswith("hangs (0.")
    assert ["sleep", "61.5"] not in [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]


def test_a_program_that_computes_did_not_end() -> None:
    """Nor did one whose child computes; printing gives no more time."""
    for script in ("while :; do :; done", "(while :; do :; done); :", "while :; do echo .; done"):
        answer = ask_shell(script, 0.6)
        assert answer.problem.startswith("did not end in ")


@pytest.mark.parametrize(
    ("seen", "left_s", "hangs"),
    [
        ([(0.0, 0.0), (4.0, 40.0)], 6.0, False),  # four cores: no slower by the clock
        ([(0.0, 0.0), (10.0, 3.0)], 7.0, False),  # a busy machine: 7 CPU seconds are left
        ([(0.0, 0.0), (10.0, 3.0), (38.0, 9.0)], 1.0, False),
        ([(0.0, 0.0), (10.0, 3.0), (38.0, 5.0)], 2.0, False),  # the clock's 40 s come first
        ([(0.0, 0.0), (12.0, 10.5)], 0.0, False),
        ([(0.0, 0.0), (10.0, 3.0), (40.0, 5.0)], 0.0, False),
        ([(0.0, 0.0), (10.0, 9.0), (40.0, 9.29)], 0.0, True),  # 0.29 s in 30 s
        ([(0.0, 0.0), (10.0, 9.0), (40.0, 9.31)], 0.0, False),
    ],
)
def test_time_is_up_by_cpu_seconds_no_faster_than_the_clock(
    monkeypatch: pytest.MonkeyPatch, seen: list[tuple[float, float]], left_s: float, hangs: bool
) -> None:
    """Of 10 s, with seconds by the clock and CPU seconds at each look."""
    looks = list(seen)
    monkeypatch.setattr(programs, "read_cpu_s", lambda _: looks[0][1])
    limit = TimeLimit(1, 10.0, read_s=lambda: looks[0][0])
    while looks[1:]:
        looks.pop(0)
        left = limit.compute_left_s()
    assert left == pytest.approx(left_s)
    assert limit.read_use() == TimeUse(wall_s=seen[-1][0], cpu_s=seen[-1][1], hangs=hangs)


@pytest.mark.parametrize(
    ("seen", "left_s", "hangs"),
    [
        ([(1800.0, 60.0)], 900.0, False),
        ([(1800.0, 60.0), (2700.0, 68.9)], 0.0, True),  # 8.9 s in 900 s
        ([(1800.0, 60.0), (2700.0, 69.1)], 900.0, False),  # it computed; the next 900 s begin
        ([(1800.0, 60.0), (2700.0, 69.1), (3600.0, 69.2)], 0.0, True),
    ],
)
def test_what_only_waits_for_a_quarter_of_an_hour_has_hung(
    monkeypatch: pytest.MonkeyPatch, seen: list[tuple[float, float]], left_s: float, hangs: bool
) -> None:
    """The limit is half an hour, four of which outlast a job of 90 minutes."""
    looks = [(0.0, 0.0), *seen]
    monkeypatch.setattr(programs, "read_cpu_s", lambda _: looks[0][1])
    limit = TimeLimit(1, 1800.0, read_s=lambda: looks[0][0])
    while looks[1:]:
        looks.pop(0)
        left = limit.compute_left_s()
    assert left == left_s
    assert limit.read_use().hangs is hangs


def test_a_budget_ends_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget ends by the clock, however little CPU time was used."""
    now = 0.0
    monkeypatch.setattr(programs, "read_cpu_s", lambda _: 0.0)
    limit = TimeLimit(1, 10.0, most_walls=1.0, read_s=lambda: now)
    now = 9.0
    assert limit.compute_left_s() == 1.0
    now = 10.0
    assert not limit.compute_left_s()


def test_cpu_seconds_are_those_of_the_whole_family() -> None:
    """Ended children count; a process that is gone has none."""
    before = read_cpu_s(os.getpid())
    ask_shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done", LIMIT_S)
    assert read_cpu_s(os.getpid()) > before
    assert not read_cpu_s(2**22 + 1)


def test_a_record_is_the_last_line_that_is_printed() -> None:
    """Output of start-up files is ignored; without a JSON object there is none."""
    assert ProgramAnswer(raw=b'hello\n{"a": 1}\n').read_record() == {"a": 1}
    for raw in (b"[1]\n", b"{", b""):
        assert ProgramAnswer(raw=raw).read_record() == {}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ProgramAnswer(problem="hangs"), "hangs"),
        (ProgramAnswer(status=0), "gave no answer"),
        (ProgramAnswer(status=-11, err="a\nb\n\nc\x1b[1m\nd\n"), "died (SIGSEGV): b / c[1m / d"),
        (ProgramAnswer(status=-40), "died (status -40): it wrote no error"),
        (ProgramAnswer(status=127), "died (status 127): it wrote no error"),
    ],
)
def test_the_end_of_a_program_has_its_signal_and_last_lines(answer: ProgramAnswer, words: str) -> None:
    """The last three non-empty lines, printable."""
    assert answer.describe_end() == words
