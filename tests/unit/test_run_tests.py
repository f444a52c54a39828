"""The runner of the tests: parts, coverage and status."""

import subprocess
from collections.abc import Mapping, Sequence

import pytest
import rooms
import run_tests


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """Commands that were started; each ends with the next of ``STATUSES``."""
    commands: list[Sequence[str]] = []

    def start(
        command: Sequence[str], *, check: bool, env: Mapping[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        assert (check, "PYTHONDONTWRITEBYTECODE" in env) == (False, False)
        commands.append(command)
        return subprocess.CompletedProcess(command, STATUSES[len(commands) - 1])

    monkeypatch.setattr(subprocess, "run", start)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return commands


STATUSES = [0, 0, 0]


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ((0, 0, 0), 0),
        ((0, 1, 2), 1),
        ((5, 0, 5), 0),  # no test was collected in two parts
        ((5, 5, 5), 5),
        ((5, 5, 2), 2),
    ],
)
def test_the_first_failure_is_the_status(
    started: list[Sequence[str]], statuses: tuple[int, int, int], status: int
) -> None:
    """All parts run, and a part without tests fails only if all are."""
    STATUSES[:] = statuses
    assert run_tests.main(()) == status
    parts = [next(argument for argument in command if argument.startswith("--part=")) for command in started]
    assert parts == ["--part=pure", "--part=shared", "--part=alone"]


def test_arguments_go_to_every_part(started: list[Sequence[str]]) -> None:
    """With arguments coverage has no floor."""
    STATUSES[:] = (0, 0, 0)
    run_tests.main(("-k", "elementwise"))
    assert all(tuple(command[-2:]) == ("-k", "elementwise") for command in started)
    assert not any("--cov" in command for command in started)


def test_the_whole_must_reach_the_floor_of_coverage() -> None:
    """Only the pure part has a floor, and the part alone has one process."""
    parts = run_tests.list_parts(4, ())
    assert [part for part, options in parts.items() if "--cov" in options] == ["pure"]
    assert parts["alone"] == ()


@pytest.mark.parametrize("room", sorted(path.stem for path in (rooms.ROOT / "gate").glob("[a-z]*/")))
def test_a_room_has_quick_tests_of_its_own(room: str) -> None:
    """The directories of quick tests exist."""
    *places, option, expression = run_tests.expand_room([f"--room={room}"])
    assert (option, expression) == ("-m", "not slow and not alone")
    assert [path for path in places if not (rooms.ROOT / path).exists()] == []
