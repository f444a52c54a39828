"""The runner of the tests: three parts, a floor of coverage for the whole, and the worst status."""

import subprocess
from collections.abc import Mapping, Sequence

import pytest
import rooms
import run_tests


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands that were started; each ends with the next status of ``STATUSES``."""
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
    """All parts are run whatever the one before says; parts without a test fail nothing, unless all are."""
    STATUSES[:] = statuses
    assert run_tests.main(()) == status
    parts = [next(one for one in command if one.startswith("--part=")) for command in started]
    assert parts == ["--part=pure", "--part=shared", "--part=alone"]


def test_arguments_go_to_every_part(started: list[Sequence[str]]) -> None:
    """And a chosen few are held to no floor of coverage, which only the whole can meet."""
    STATUSES[:] = (0, 0, 0)
    run_tests.main(("-k", "elementwise"))
    assert all(tuple(command[-2:]) == ("-k", "elementwise") for command in started)
    assert not any("--cov" in command for command in started)


def test_the_whole_is_held_to_the_floor_of_coverage() -> None:
    """Of the pure part alone; what judges times has no neighbours."""
    parts = run_tests.list_parts(4, ())
    assert [part for part, options in parts.items() if "--cov" in options] == ["pure"]
    assert parts["alone"] == ()


@pytest.mark.parametrize("room", sorted(path.stem for path in (rooms.ROOT / "gate").glob("[a-z]*/")))
def test_a_room_has_quick_tests_of_its_own(room: str) -> None:
    """They are where they are said to be."""
    *places, option, expression = run_tests.expand_room([f"--room={room}"])
    assert (option, expression) == ("-m", "not slow and not alone")
    assert [place for place in places if not (rooms.ROOT / place).exists()] == []
