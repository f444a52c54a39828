"""The action's first file, in this process: which Python it takes, and what it goes on to."""

import os
import runpy
import sys
from pathlib import Path

import pytest
from action.step import ROOT, parse_command_file

from gate.action import launch, start

STUB = """\
import sys
first = sys.path[0]
def enter(*arguments):
    return [first, sys.path[0], *arguments]
def launch(environ):
    return [first, sys.path[0], environ]
"""


def run_start(*arguments: str) -> object:
    """Run the file as a program; return its status."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [start.__file__, *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(start.__file__, run_name="__main__")
    return ended.value.code


@pytest.mark.parametrize(
    ("version", "is_refused"),
    [
        ((3, 9, 1, "final", 0), True),
        ((3, 10, 13, "final", 0), True),
        ((3, 11), False),
        ((3, 11, 0, "final", 0), False),
    ],
)
def test_the_oldest_python_is_3_11(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    version: tuple[object, ...],
    is_refused: bool,
) -> None:
    """An older one is refused, with exit code 2 as an output."""
    monkeypatch.setattr(launch, "launch", lambda _: 0)
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))

    assert run_start() == (2 if is_refused else 0)
    named = f"needs Python 3.11 or later; {sys.executable} is {'.'.join(map(str, version[:3]))}. Name another"
    assert (named in capsys.readouterr().out) is is_refused
    written = parse_command_file((tmp_path / "output").read_text()) if is_refused else {}
    assert written == ({"exit-code": "2"} if is_refused else {})


@pytest.fixture
def old_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python that is refused."""
    monkeypatch.setattr(sys, "version_info", (3, 10, 0, "final", 0))


@pytest.mark.usefixtures("old_python")
def test_the_output_of_a_refusal_is_added_to_earlier_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An outer step may have written to the runner's file."""
    output = tmp_path / "output"
    output.write_text("a=b\n")
    monkeypatch.setenv("GITHUB_OUTPUT", str(output))

    run_start()

    assert parse_command_file(output.read_text()) == {"a": "b", "exit-code": "2"}


@pytest.mark.usefixtures("old_python")
@pytest.mark.parametrize("output", ["", "/nowhere/output"])
def test_a_refusal_needs_no_file_of_the_runner(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    """Outside GitHub Actions, or on a full disk, the message and the status are left."""
    monkeypatch.setenv("GITHUB_OUTPUT", output)

    assert run_start() == 2
    assert capsys.readouterr().out.startswith("::error title=compile-gate::")


def test_the_gate_is_imported_from_around_this_file_and_from_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its directory is the first on the search path for that import alone."""
    assert runpy.run_path(start.__file__)["ROOT"] == ROOT
    package = tmp_path / "gate" / "action"
    package.mkdir(parents=True)
    for directory in (package.parent, package):
        (directory / "__init__.py").touch()
    (package / "launch.py").write_text(STUB)
    for name in [name for name in sys.modules if name.partition(".")[0] == "gate"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "other"), *sys.path])
    monkeypatch.setattr(start, "ROOT", tmp_path)
    before = [*sys.path]

    results: list[object] = [start.main(["gate", "plan", "-x"]), start.main([])]

    assert results == [
        [str(tmp_path), before[0], "gate", ["plan", "-x"]],
        [str(tmp_path), before[0], dict(os.environ)],
    ]
    assert sys.path == before


def test_as_a_program_it_passes_on_its_arguments_and_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module comes first, then what the module is given."""
    entered: list[object] = []

    def enter(*arguments: object) -> int:
        entered.append(arguments)
        return 7

    monkeypatch.setattr(launch, "enter", enter)

    assert run_start("gate", "plan") == 7
    assert entered == [("gate", ["plan"])]
