"""Asking another program."""

from __future__ import annotations

import sys
from pathlib import Path

from gate.programs import ProgramAnswer, ask_program

LIMIT_S = 60.0


def test_a_program_gets_input_place_and_variables_and_its_streams_are_told_apart(tmp_path: Path) -> None:
    """What it prints, what it complains of and how it ended."""
    code = "import os, sys; print(input(), os.getcwd(), os.environ['A']); sys.exit('no')"
    command = [sys.executable, "-c", code]
    answer = ask_program(command, limit_s=LIMIT_S, given="in", directory=tmp_path, variables={"A": "b"})
    assert answer == ProgramAnswer(status=1, out=f"in {tmp_path.resolve()} b\n", err="no\n")
    assert not answer.output


def test_a_program_that_is_missing_or_slow_is_a_problem_and_no_exception() -> None:
    """Whoever asks decides what that means."""
    assert ask_program(["/no/such/program"], limit_s=LIMIT_S).problem.startswith("FileNotFoundError: ")
    slow = ask_program([sys.executable, "-c", "import time; time.sleep(60)"], limit_s=0.1)
    assert slow.problem.startswith("TimeoutExpired: ")
    assert slow.status == -1


def test_a_record_is_the_last_line_that_is_printed() -> None:
    """Whatever a start-up file prints before; nothing where the line is no JSON object."""
    assert ProgramAnswer(out='hello\n{"a": 1}\n').read_record() == {"a": 1}
    for out in ("[1]\n", "{", ""):
        assert ProgramAnswer(out=out).read_record() == {}
