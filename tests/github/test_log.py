"""In the output of jobs with a token the runner finds no command but ours."""

import io
import re
import sys
import traceback

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from runner_log import STOP, Found, list_commands

from gate.cli import main
from gate.github.job import (
    MAX_LINE,
    GuardedLog,
    guard_output,
    make_line,
    render_annotation,
    write_annotations,
    write_log,
)

COMMANDS = (
    "::set-output name=authorized::true",
    "  ::add-mask::a",
    "##[add-mask]a",
    "text ##[stop-commands]pwn",
    "##[set-env name=PATH]/evil",
    "#" * 7 + "[error]x",
    ":\ufe0f:add-mask::a",
    "\u200b::add-mask::a",
    "\u00ad:\u2060:add-mask:\u034f:a",
    "#\u115f#\u3164[add-mask]a",
    "a\r::add-mask::a",
    "a\u2028##[add-mask]a",
)


def test_the_stand_in_finds_what_the_runner_does() -> None:
    """Both spellings in any case; not between stop and resume, and no unregistered name."""
    log = (
        "::warning title=a::b::c\nx ##[ADD-MASK]y\nx ::error::no\n::unknown::x\n::stop-commands::Tok\n"
        "##[error]stopped\n::tok::\n  ::Notice::z\n"
    )

    assert list_commands(log) == [
        Found("warning", "title=a", "b::c"),
        Found("add-mask", "", "y"),
        Found("stop-commands", "", "Tok"),
        Found("notice", "", "z"),
    ]
    assert all(list_commands(command) for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_is_left_in_a_line(command: str) -> None:
    """In any spelling and at any position."""
    for text in (command, f"compile-gate: '{command}'", f":{command}", f"#{command}", command * 3):
        assert list_commands(make_line(text)) == []


PIECES = st.sampled_from(
    [":", "::", "#", "##", "[", "]", "##[", "error", "add-mask", "\u200b", "\ufe0f", "\n"]
)


@given(st.lists(PIECES | st.text(max_size=5), max_size=60).map("".join), st.integers(10, 80))
@example("#" * 9 + "[error]", 10)
def test_any_text_becomes_one_short_line_that_shows_itself(text: str, limit: int) -> None:
    """It has no line end, nothing invisible, no command, and a bounded length."""
    line = make_line(text, limit)

    assert len(line) <= limit
    assert line.isprintable()
    assert list_commands(line) == []


def test_plain_text_stays_what_it_is() -> None:
    """Our own messages do not change, in any language of their names."""
    text = "compile-gate: modèle.py: cases[0].size: 5 % (a::b is broken): see https://github.com/a/b#c"

    assert make_line(text) == text.replace("a::b", "a: :b")
    assert make_line("x" * 10_000) == "x" * (MAX_LINE - 3) + "..."
    assert make_line("x" * 10, 10) == "x" * 10
    assert make_line("x" * 11, 10) == "x" * 7 + "..."


def test_everything_that_is_printed_goes_through(capsys: pytest.CaptureFixture[str]) -> None:
    """Pieces of a line that are harmless alone, a traceback, and a last line without an end."""
    with guard_output({"GITHUB_ACTIONS": "true"}):
        for piece in (":", ":error", "::joined\nnext\n"):
            sys.stdout.write(piece)
        traceback.print_exception(ValueError("::add-mask::a\n##[add-mask]b"))
        write_annotations([render_annotation("notice", "ours")])
        sys.stderr.write("##[add-mask]c")
        sys.stdout.write("##[add-mask]d")
    printed = capsys.readouterr()

    token = re.match(r"::stop-commands::([0-9a-f]{32})\n", printed.out)
    assert token is not None
    assert [command.name for command in list_commands(printed.out)] == [STOP, "notice", STOP]
    assert printed.out.endswith(f"# #[add-mask]d\n::{token[1]}::\n")
    assert list_commands(printed.out.replace("stop-commands", "x")) == [
        Found("notice", "title=compile-gate", "ours")
    ]
    assert list_commands(printed.err) == []
    assert printed.err.endswith("# #[add-mask]c\n")


def test_a_job_guards_output_and_writes_its_log_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner reads no command of a process that the job starts, and sees lines before they are many."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="utf-8"))
    with guard_output({"GITHUB_ACTIONS": "true"}):
        token = re.fullmatch(rb"::stop-commands::([0-9a-f]{32})\n", raw.getvalue())
        assert token is not None
        write_log("a line")
        assert raw.getvalue().endswith(b"\na line\n")
        guard = sys.stdout  # which flushes as it is deleted
    assert guard is not sys.stdout
    assert raw.getvalue() == token[0] + b"a line\n::" + token[1] + b"::\n"


def test_a_line_without_an_end_is_ended_before_a_command() -> None:
    """And is passed on at once; one that was ended gets no empty line behind it."""
    raw = io.BytesIO()
    target = io.TextIOWrapper(raw, encoding="utf-8")
    guarded = GuardedLog(target, "Tok")
    guarded.write("a\nb")
    guarded.write_commands(["::notice::x"])
    guarded.write_commands([])
    guarded.finish()
    commands = "::Tok::\n::notice::x\n::stop-commands::Tok\n::Tok::\n::stop-commands::Tok\n"
    assert raw.getvalue().decode() == f"a\nb\n{commands}"


def test_a_long_line_in_pieces_is_cut_as_a_whole_one() -> None:
    """At 600 characters, of which three are dots."""
    target = io.StringIO()
    guarded = GuardedLog(target, "")
    for piece in ("x" * 601, "x" * 99, "\n"):
        guarded.write(piece)
    assert target.getvalue() == f"{'x' * 597}...\n"


def test_outside_of_a_runner_no_command_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """At a terminal lines are made harmless too, and nothing else is printed."""
    with guard_output({}):
        sys.stdout.write("##[error]x\n")

    assert capsys.readouterr().out == "# #[error]x\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["github", "authorize", "##[add-mask]a"],
        ["github", "publish", "--run-id", "::add-mask::a"],
        ["github", "propose", "--head-sha", "\n::add-mask::a", "--head-ref", "b"],
        ["github", "publish", "--run-id", "1", "--comment", "\r##[add-mask]a"],
    ],
)
def test_wrong_arguments_are_reported_harmlessly(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The parser of arguments prints what it cannot read."""
    assert main(arguments) == 2
    printed = capsys.readouterr()

    assert "add-mask" in printed.err
    assert list_commands(printed.out + printed.err) == []
