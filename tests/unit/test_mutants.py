"""What `make mutants` draws, which tests run, and what counts as noticed."""

import tomllib
from pathlib import Path

import play_mutants
import pytest
from draw_mutants import Mutant, draw_mutants, filter_lines, list_mutants
from play_mutants import ALIVE, DEAD, EQUIVALENT, ROOT, UNTESTED, RoomTests, find_reason, play

SOURCE = """\
LIMIT = 3


def is_short(words: list[str], most: int = LIMIT) -> bool:
    if not words:
        raise ValueError("no words")
    return len(words) <= most
"""
TEST = """\
import pytest
from gate.room import is_short


def test_none():
    with pytest.raises(ValueError):
        is_short([])


def test_two():
    assert is_short(["a", "b"])
"""


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository with one room, whose tests do not reach the edge."""
    for name, text in {"gate/__init__.py": "", "gate/room.py": SOURCE, "tests/test_room.py": TEST}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def find_mutant(top: Path, kind: str, new: str) -> Mutant:
    """The only change of a kind to this text."""
    groups = list_mutants(top / "gate/room.py", top)
    (mutant,) = (mutant for group in groups for mutant in group if (mutant.kind, mutant.new) == (kind, new))
    return mutant


def test_a_room_can_be_changed_in_so_many_ways(top: Path) -> None:
    """Numbers, tests, raises and comparisons change; annotations and texts do not."""
    changes = {
        (mutant.line, mutant.kind, mutant.new)
        for group in list_mutants(top / "gate/room.py", top)
        for mutant in group
    }
    assert changes == {
        (1, "number", "4"),
        (1, "number", "2"),
        (5, "negated", "(not not words)"),
        (5, "dropped not", "(words)"),
        (6, "removed", "pass"),
        (7, "comparison", "(len(words) < most)"),
        (7, "comparison", "(len(words) > most)"),
    }


def test_a_seed_draws_the_same_places_again(top: Path) -> None:
    """At most as many as exist, one for each place."""
    drawn = draw_mutants(top, "room", 2, 7)
    assert drawn == draw_mutants(top, "room", 2, 7)
    assert len({(mutant.begin, mutant.end) for mutant in drawn}) == 2
    assert len(draw_mutants(top, "room", 99, 7)) == 4
    assert {
        mutant.line for mutant in filter_lines(draw_mutants(top, "room", 99, 7), {"gate/room.py": {7}})
    } == {7}


def test_a_change_is_noticed_by_the_tests_that_run_its_line(top: Path) -> None:
    """Two words are within the limit and do not reach the edge; the file is restored."""
    two = ["tests/test_room.py::test_two"]
    assert play(find_mutant(top, "comparison", "(len(words) > most)"), two, top) == DEAD
    assert play(find_mutant(top, "comparison", "(len(words) < most)"), two, top) == ALIVE
    assert play(find_mutant(top, "removed", "pass"), [], top) == UNTESTED
    assert (top / "gate/room.py").read_text(encoding="utf-8") == SOURCE


def test_the_quickest_tests_come_first_and_a_constants_are_those_of_its_users(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line run only at import is tested where its name is used, without slow tests."""
    seconds = {"slow": 3.0, "quick": 1.0, "endless": 30.0}
    tests = RoomTests(lines={"gate/room.py": {4: ["slow"], 7: ["endless", "slow", "quick"]}}, seconds=seconds)
    assert tests.choose(find_mutant(top, "comparison", "(len(words) > most)"), top) == ["quick", "slow"]
    assert tests.choose(find_mutant(top, "number", "4"), top) == ["slow"]
    monkeypatch.setattr(play_mutants, "TESTS_S", 2.0)
    assert tests.choose(find_mutant(top, "comparison", "(len(words) > most)"), top) == ["quick"]


def test_what_keeps_its_meaning_is_a_change_that_can_be_drawn_and_has_a_reason() -> None:
    """Each entry is a change of an existing line."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])
    files = {entry["file"] for entry in entries}
    drawn = [mutant for file in files for group in list_mutants(ROOT / file, ROOT) for mutant in group]
    keys = {(mutant.file, mutant.source, mutant.old, mutant.new) for mutant in drawn if find_reason(mutant)}
    assert keys == {(entry["file"], entry["source"], entry["old"], entry["new"]) for entry in entries}
    assert all(len(entry["why"]) > 20 for entry in entries)
