"""The command line: the help of each command, and the answer to wrong calls."""

import importlib
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gate.action.inputs import INPUTS
from gate.cli import main
from gate.cli.commands import COMMANDS, GROUPS
from gate.cli.options import FAIL_ON, Command
from gate.cli.parser import COMMON_CODES, list_commands, make_parser, place_arguments
from gate.decide.conclude.exit_codes import FailOn
from gate.errors import ExitCode

MEASURING = ("check", "ab", "bisect", "measure", "baseline refresh", "calibrate", "selftest")


@pytest.mark.parametrize("command", list_commands(), ids=lambda command: command.name)
def test_help_shows_an_example_and_its_exit_codes(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every --help has an example, explains exit 0, and names its other codes only."""
    assert main([*command.name.split(), "--help"]) == 0
    printed = capsys.readouterr().out
    assert f"example:\n  compile-gate {command.name}" in printed
    assert f"exit codes:\n  0   {command.success}\n" in printed
    codes = {int(code) for code in re.findall(r"^  (\d+) +\S", printed.split("exit codes:")[1], re.MULTILINE)}
    assert codes == {0, *command.codes, *COMMON_CODES}
    assert ("what was measured is kept" in printed) is (command.name in MEASURING)


@pytest.mark.parametrize("parent", ["", "baseline", "github"])
def test_what_needs_a_command_alone_is_its_help(parent: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A command without its subcommand prints the list, and no error."""
    assert main(parent.split()) == 0
    shown = capsys.readouterr()
    assert main([*parent.split(), "--help"]) == 0
    assert (shown.out, shown.err) == (capsys.readouterr().out, "")


def test_help_lists_each_command_once_in_its_group(capsys: pytest.CaptureFixture[str]) -> None:
    """Groups follow the table's order; no line is wider than a terminal, and none is cut."""
    main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    titles = [line.removesuffix(":") for line in lines if line.endswith(":")]
    assert titles == [*GROUPS, "options", "exit codes"]
    for command in COMMANDS:
        assert [line.split() for line in lines].count([command.name, *command.summary.split()]) == 1
    assert max(map(len, lines[: lines.index("options:")])) <= 80


def test_help_lists_all_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    """The main help has the whole table, once."""
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out.split("exit codes:")[1]
    assert [int(line.split()[0]) for line in printed.splitlines() if line] == sorted(ExitCode)


@pytest.mark.parametrize("command", list_commands(), ids=lambda command: command.name)
def test_an_example_can_be_called(command: Command) -> None:
    """The options of an example exist."""
    example = command.example.replace("$SHA", "a" * 40)
    options = make_parser().parse_args(shlex.split(example)[1:])
    assert options.run == command.run


@pytest.mark.parametrize("command", list_commands(), ids=lambda command: command.name)
def test_every_command_exists(command: object) -> None:
    """The function that the table names for a command can be imported."""
    module, _, function = command.run.partition(":")  # type: ignore[attr-defined] # a Command
    assert callable(getattr(importlib.import_module(module), function))


@pytest.mark.parametrize(
    "arguments",
    [
        *(["chek"], ["check", "--tirals", "3"], ["compare", "one.json"], ["schema", "nothing"]),
        *(["check", "--sel", "bert"], ["baseline", "shwo"], ["github", "publsh"]),
        *(["merge", "a.json"], ["merge", "a.json", "--out", "run.json"]),
        *(["help", "chek"], ["schema", "run", "--config", "gate.yml"]),
        *(["ab", "--minutes", value] for value in ("0", "-5", "nan", "inf", "ten", "")),
    ],
)
def test_wrong_call_is_two_lines_and_exit_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The lines name the problem and the help."""
    assert main(arguments) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_fail_on_takes_what_the_decision_knows() -> None:
    """The command and the action offer the same choices."""
    choices = tuple(FailOn)
    offered = next(key for key in INPUTS if key.name == "fail-on")
    assert choices == FAIL_ON
    assert "|".join(choices) == offered.pattern


def test_importing_the_command_line_leaves_torch_and_pytest_out() -> None:
    """Parsing any command line imports nothing heavy, so that --help is instant."""
    code = (
        "import sys, gate.cli; gate.cli.make_parser(); "
        "print([name for name in ('torch', 'pytest', 'rich', 'yaml', 'jsonschema') if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "[]"


def test_a_directory_that_is_gone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command in a deleted directory is two lines and exit 2."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["doctor"]) == 2
    assert "current directory" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("given", "placed"),
    [
        ("help", "--help"),
        ("help baseline show", "baseline show --help"),
        ("-q plan", "plan -q"),
        ("--verbose merge -- a.json", "merge --verbose -- a.json"),
        ("-q", ""),  # as without anything: the help
        ("-q --help", "-q --help"),
        ("plan -q", "plan -q"),
    ],
)
def test_what_stands_before_a_command_goes_behind_it(given: str, placed: str) -> None:
    """`help COMMAND` is its --help, and -q and -v may stand on either side of a command."""
    assert place_arguments(given.split()) == placed.split()


@pytest.mark.parametrize("command", list_commands(), ids=lambda command: command.name)
def test_each_command_takes_the_options_of_volume(command: Command) -> None:
    """A script may pass -q to whatever it calls."""
    example = shlex.split(command.example.replace("$SHA", "a" * 40))[1:]
    assert make_parser().parse_args(place_arguments(["-q", *example])).quiet


_SIGNALLED = """
import os, signal, sys
from gate.__main__ import main
class Finder:
    def find_spec(name, *rest):
        if name == "gate.cli":
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Finder)
sys.exit(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_modules_are_imported_is_one_line(number: int) -> None:
    """Ctrl-C and SIGTERM end with 130, without a traceback."""
    command = [sys.executable, "-c", _SIGNALLED.format(number=int(number))]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (ExitCode.INTERRUPTED, "compile-gate: stopped.\n")
