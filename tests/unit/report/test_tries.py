"""Sentences on cases that were tried."""

from gate.records.run import FailureKind
from gate.report.tables import render_attempt, render_tally
from tests.make import make_failure

FAILURE = make_failure(
    "m/x",
    "KeyError: 3",
    trial=0,
    kind=FailureKind.ERROR,
    stage="build",
    log_tail='  File "m.py", line 4\x1b[31m\n\nKeyError: 3\n',
    log="out/logs/m/x/0-try.log",
)


def test_sound_case_is_one_line() -> None:
    assert render_attempt("m/x", None) == "ok      m/x\n"


def test_failure_shows_the_users_lines_and_the_log() -> None:
    """The stage, the user's lines, and the path of the log."""
    assert render_attempt("m/x", FAILURE) == (
        "FAILED  m/x: error in stage build: KeyError: 3\n"
        '    |   File "m.py", line 4\n'
        "    | KeyError: 3\n"
        "    log: out/logs/m/x/0-try.log\n"
    )


def test_tally_names_what_is_unknown() -> None:
    """A traced case may fail to compile; one that cannot be traced makes checks INCOMPLETE."""
    assert render_tally(1, 0) == "1 case can be built, called and traced. Nothing was measured."
    assert render_tally(8, 2) == "2 of 8 cases cannot be measured: `check` would be INCOMPLETE."
