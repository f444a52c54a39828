"""Points of a history with merged branches, in real git."""

from pathlib import Path

import pytest

from gate.bisect.points import Ends
from gate.bisect.search import Forecast, search_first
from gate.records.studies import Mark
from tests.git import run_git

COMMITS = ("main 1", "side 1", "side 2", "main 2", "merge", "main 3")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of ``good`` and COMMITS, each with a tag; ``side`` is merged into ``main``."""
    top = tmp_path_factory.mktemp("history")
    run_git(top, "init", "--quiet", "--initial-branch=main")

    def commit(name: str) -> None:
        run_git(top, "commit", "--quiet", "--allow-empty", "--message", name)
        run_git(top, "tag", name.replace(" ", "-"))

    commit("good")
    run_git(top, "checkout", "--quiet", "-b", "side")
    commit("side 1")
    commit("side 2")
    run_git(top, "checkout", "--quiet", "main")
    commit("main 1")
    commit("main 2")
    run_git(top, "merge", "--quiet", "--no-ff", "--message", "merge", "side")
    run_git(top, "tag", "merge")
    commit("main 3")
    return top


@pytest.mark.parametrize("name", COMMITS)
def test_the_first_bad_commit_is_found_on_any_branch(history: Path, name: str) -> None:
    """All descendants are bad; it takes about as many steps as a list."""
    first, good, bad = (
        run_git(history, "rev-parse", ref) for ref in (name.replace(" ", "-"), "good", "main")
    )
    ends = Ends(directory=history, good=good, bad=bad)
    asked: list[str] = []

    def ask(point: str) -> Mark:
        asked.append(point)
        return Mark.BAD if run_git(history, "merge-base", first, point) == first else Mark.GOOD

    assert search_first(ends.rank, good, bad, ask, {}) == [first]
    assert len(ends.list_after_good()) == len(COMMITS)
    assert len(asked) <= Forecast(between=len(COMMITS) - 1, step_s=1.0).steps + 1


def test_what_cannot_be_measured_stays_a_candidate(history: Path) -> None:
    """The merge and both its parents cannot be measured: all commits that they hide are candidates."""
    good, bad = (run_git(history, "rev-parse", ref) for ref in ("good", "main"))
    names = {run_git(history, "rev-parse", name.replace(" ", "-")): name for name in COMMITS}
    marks = {"main 1": Mark.GOOD, "side 1": Mark.GOOD}
    ends = Ends(directory=history, good=good, bad=bad)
    left = search_first(ends.rank, good, bad, lambda point: marks.get(names[point], Mark.SKIP), {})
    assert left is not None
    assert {names[point] for point in left} == {"side 2", "main 2", "merge", "main 3"}
