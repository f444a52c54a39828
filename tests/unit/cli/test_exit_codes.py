"""exit_codes.md, row by row: what a 0 promises, and what is never a 0."""

import json
import re
from pathlib import Path

import pytest

from gate.cli import main
from gate.cli.parser import list_commands
from tests.unit.cli.conftest import RunGate, Sandbox
from tests.unit.cli.sides import Scene, Side
from tests.unit.cli.ways import WAYS

ROOT = Path(__file__).parents[3]
DOCUMENT = (Path(__file__).parent / "exit_codes.md").read_text(encoding="utf-8")
DOCTOR = "doctor"  # on the machine that runs this test: whether it is fit is not ours to say
# The ways whose good side needs a command that a person calls; those of workflows have their own tests.
WORKFLOWS = {"publish", "authorize", "accept-regression", "propose"}


def read_rows() -> dict[str, int]:
    """The code of the nearest side that is not 0, by the way's name."""
    rows = re.findall(r"^\| `([a-z-]+)` \| .* \| (\d+) \|$", DOCUMENT, re.MULTILINE)
    return {name: int(code) for name, code in rows}


@pytest.fixture
def scene(run_gate: RunGate, sandbox: Sandbox) -> Scene:
    return Scene(
        sandbox=sandbox,
        run_gate=lambda *arguments, **settings: run_gate(*arguments, **settings, cwd=sandbox.top),
        read_printed=lambda: " ".join(sandbox.read().out.split()),
    )


def test_every_row_is_played() -> None:
    """The table and the test name the same ways."""
    assert set(read_rows()) == {*WAYS, DOCTOR}


_PLAYED: dict[Side, tuple[int, str]] = {}  # the code and what was printed, of each side that was played


def play_once(side: Side, scene: Scene) -> tuple[int, str]:
    """Play a side that rows may share."""
    if side not in _PLAYED:
        _PLAYED[side] = side(scene), scene.read_printed()
    return _PLAYED[side]


@pytest.mark.parametrize("name", WAYS)
def test_a_zero_is_what_the_table_says(scene: Scene, name: str) -> None:
    """The way ends with 0, and prints what the row promises."""
    code, printed = play_once(WAYS[name].good, scene)
    assert code == 0
    assert WAYS[name].says in printed


@pytest.mark.parametrize(("name", "code"), read_rows().items())
def test_the_nearest_that_must_not_be_green_is_not(scene: Scene, name: str, code: int) -> None:
    """Its code is the one in the table, and not 0."""
    assert code != 0
    if name == DOCTOR:
        assert scene.sandbox.run("doctor", "--device", "cuda:63") == code
    else:
        assert WAYS[name].bad(scene) == code


@pytest.mark.slow
@pytest.mark.usefixtures("sandbox")
def test_doctor_ends_as_its_checks_do(capsys: pytest.CaptureFixture[str]) -> None:
    """The code is 0 if none failed, on whatever machine this is."""
    code = main(["doctor", "--format", "json"])
    levels = {check["level"] for check in json.loads(capsys.readouterr().out)}
    assert code == (4 if "fail" in levels else 0)


def test_every_command_has_a_row() -> None:
    """No command may end with 0 without a row."""
    named = {*read_rows(), *re.findall(r"^\| `([a-z-]+)` \|", DOCUMENT, re.MULTILINE)}
    commands = {command.name.split()[-1] for command in list_commands()}
    assert commands - named - {"compare"} == set()
    assert "`check`, `ab` and `compare`" in DOCUMENT
    assert commands >= WORKFLOWS


@pytest.mark.parametrize("node", re.findall(r"`(tests/\S+::\w+)`", DOCUMENT))
def test_a_test_that_holds_a_row_exists(node: str) -> None:
    """Rows about workflows and pytest name a test elsewhere."""
    file, _, name = node.partition("::")
    assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8")
