"""What `make mutants` draws, which tests run, and what counts as noticed."""

import tomllib
from pathlib import Path

import play_mutants
import pytest
from draw_mutants import Mutant, draw_mutants, filter_lines, list_mutants
from fork_mutants import ALIVE, DEAD
from play_mutants import EQUIVALENT, ROOT, RoomTests, find_reason, play, start_forks

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


def test_red():
    assert not is_short(["a", "b"])
"""
TESTS = "tests/test_room.py"


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


@pytest.mark.parametrize("is_forked", [True, False])
def test_a_change_is_noticed_by_the_tests_that_run_its_line(top: Path, is_forked: bool) -> None:
    """Two words are within the limit and do not reach the edge; the file is restored.

    A test that fails in a fork without a change notices nothing there.
    """
    few = find_mutant(top, "comparison", "(len(words) > most)"), [f"{TESTS}::test_two"], DEAD
    edge = find_mutant(top, "comparison", "(len(words) < most)"), [f"{TESTS}::test_two"], ALIVE
    empty = find_mutant(top, "removed", "pass"), [f"{TESTS}::test_two", f"{TESTS}::test_none"], DEAD
    red = find_mutant(top, "removed", "pass"), [f"{TESTS}::test_red", f"{TESTS}::test_two"], ALIVE
    with start_forks(top, ["tests"]) as play_in_fork:
        for mutant, tests, end in (few, edge, empty, *([red] if is_forked else [])):
            assert (play_in_fork(mutant, tests) if is_forked else play(mutant, tests, top)) == end
    assert (top / "gate/room.py").read_text(encoding="utf-8") == SOURCE


def test_a_function_does_what_is_between_its_first_and_last_line(top: Path) -> None:
    """Its default is what importing does."""
    functions = {
        mutant.kind: (mutant.function, mutant.function_line)
        for group in list_mutants(top / "gate/room.py", top)
        for mutant in group
    }
    assert functions["comparison"] == functions["removed"] == ("is_short", 4)
    assert functions["number"] == ("", 0)


def test_the_tests_that_come_first_are_of_the_room_and_share_words_with_the_change(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the quickest, as far as time allows.

    What importing runs is tested where its name is used, in the product or in a file of tests.

    A line that no test runs itself may be one that its processes run.
    """
    seconds = {"room/slow": 3.0, "room/quick": 1.0, "room/endless": 30.0, "room/short": 4.0, "other": 0.1}
    lines = {4: ["room/slow"], 7: ["room/endless", "room/slow", "room/quick", "room/short", "other"]}
    tests = RoomTests(lines={"gate/room.py": lines}, seconds=seconds)
    late = find_mutant(top, "comparison", "(len(words) > most)")
    assert tests.choose(late, top, ("room",)) == ["room/short", "room/quick", "room/slow", "other"]
    assert tests.choose(find_mutant(top, "number", "4"), top, ("room",)) == ["room/slow"]
    assert tests.choose(find_mutant(top, "removed", "pass"), top, ("other",)) == ["other"]
    named = RoomTests(lines={"gate/room.py": lines}, seconds={f"{TESTS}::test_two": 1.0, "other": 0.1})
    assert named.choose(find_mutant(top, "number", "4"), top, ("tests",)) == [f"{TESTS}::test_two"]
    monkeypatch.setattr(play_mutants, "TESTS_S", 5.0)
    assert tests.choose(late, top, ("room",)) == ["room/short", "room/quick", "other"]


def test_what_keeps_its_meaning_is_a_change_that_can_be_drawn_and_has_a_reason() -> None:
    """Each entry is a change of an existing line."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])
    files = {entry["file"] for entry in entries}
    drawn = [mutant for file in files for group in list_mutants(ROOT / file, ROOT) for mutant in group]
    keys = {(mutant.file, mutant.source, mutant.old, mutant.new) for mutant in drawn if find_reason(mutant)}
    assert keys == {(entry["file"], entry["source"], entry["old"], entry["new"]) for entry in entries}
    assert all(len(entry["why"]) > 20 for entry in entries)
