"""The base commit of a change: real merges, clones and payloads, above all stale ones."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from action.samples import commit

from gate.action import base_commit
from gate.action.base_commit import BaseCommit, find_base, find_head_sha
from gate.errors import MachineError, UsageError
from tests.git import run_git


@dataclass(kw_only=True)
class Story:
    """A topic branch left main at M0, main went on to M1, and GitHub tries the merge."""

    top: Path
    stale: str  # M0
    base: str  # M1
    head: str
    merge: str

    def make_event(self, **base: Any) -> dict[str, Any]:
        """Make the payload; its base is stale unless it is given."""
        return {
            "pull_request": {
                "base": {"ref": "main", "sha": self.stale, **base},
                "head": {"ref": "topic", "sha": self.head},
            }
        }

    def find(self, event: dict[str, Any] | None = None) -> BaseCommit | None:
        return find_base(event or self.make_event(), self.top)

    def find_sha(self, event: dict[str, Any] | None = None) -> str:
        base = self.find(event)
        return base.sha if base else ""


def add(top: Path, name: str) -> str:
    """Commit a new file and return the commit."""
    (top / name).write_text(name)
    return commit(top, name)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """The story, with GitHub's trial merge checked out as actions/checkout leaves it."""
    top = tmp_path / "work"
    top.mkdir()
    stale = add(top, "M0")
    run_git(top, "checkout", "--quiet", "-b", "topic")
    head = add(top, "change")
    run_git(top, "checkout", "--quiet", "main")
    base = add(top, "M1")
    run_git(top, "checkout", "--quiet", "--detach")
    run_git(top, "merge", "--quiet", "--no-ff", "--message", f"Merge {head} into {base}", "topic")
    return Story(top=top, stale=stale, base=base, head=head, merge=run_git(top, "rev-parse", "HEAD"))


def clone(story: Story, depth: int) -> Path:
    """Clone what is checked out, as actions/checkout does with a ``fetch-depth``."""
    path = story.top.parent / "clone"
    run_git(story.top, "branch", "--quiet", "trial", story.merge)
    run_git(
        story.top, "clone", "--quiet", "--branch=trial", f"--depth={depth}", f"file://{story.top}", str(path)
    )
    return path


def test_a_stale_payload_does_not_name_the_base(story: Story) -> None:
    """The base is the merge's first parent, however old the payload's commit is."""
    assert story.find() == BaseCommit(sha=story.base, origin="what GitHub merged this change into, to try it")


def test_a_changed_base_branch_is_followed(story: Story) -> None:
    """A payload may still name the branch that the pull request was opened against."""
    run_git(story.top, "checkout", "--quiet", "--orphan", "release")
    other = commit(story.top, "release")
    run_git(story.top, "checkout", "--quiet", "--detach", story.merge)

    assert story.find_sha(story.make_event(ref="release", sha=other)) == story.base


def test_a_rerun_is_compared_with_the_first_runs_base(story: Story) -> None:
    """GitHub checks out the first run's merge again: main's later commits do not matter."""
    run_git(story.top, "checkout", "--quiet", "main")
    add(story.top, "M2")
    run_git(story.top, "checkout", "--quiet", "--detach", story.merge)

    assert story.find_sha() == story.base


def test_a_commit_that_is_not_even_here_does_not_matter(story: Story) -> None:
    """With a trial merge the payload's base is not read."""
    assert story.find_sha(story.make_event(sha="f" * 40)) == story.base


def test_where_the_head_itself_is_checked_out_its_merge_base_counts(story: Story) -> None:
    """The head lacks main's later commits; the origin names the commit that was taken."""
    run_git(story.top, "checkout", "--quiet", "topic")

    base = story.find(story.make_event(sha=story.base))

    origin = f"where this change left the base commit {story.base[:12]} that the event names"
    assert base == BaseCommit(sha=story.stale, origin=origin)


def test_a_head_that_merged_main_itself_is_no_trial_merge(story: Story) -> None:
    """Its second parent is main, not the pull request's head: the merge-base is main's commit."""
    update_topic(story)

    assert story.find_sha(story.make_event(sha=story.base)) == story.base


def clone_topic(story: Story) -> None:
    """Continue in a full clone at the pull request's head, as with ``ref: head.sha``."""
    path = story.top.parent / "whole"
    subprocess.run(["git", "clone", "--quiet", f"file://{story.top}", str(path)], check=True)
    run_git(path, "checkout", "--quiet", "--detach", story.head)
    story.top = path


def update_topic(story: Story) -> None:
    """Merge main's M1 into the topic, as 'Update branch' does."""
    run_git(story.top, "checkout", "--quiet", "topic")
    run_git(story.top, "merge", "--quiet", "--no-ff", "--message", "update", "main")
    story.head = run_git(story.top, "rev-parse", "HEAD")


def test_an_updated_head_is_compared_with_where_it_left_main(story: Story) -> None:
    """The payload names M0; the branch in the clone shows that the change left main at M1."""
    update_topic(story)
    clone_topic(story)

    origin = "where this change left the base branch origin/main"
    assert story.find() == BaseCommit(sha=story.base, origin=origin)


def test_a_clone_without_the_base_branch_goes_by_the_payload(story: Story) -> None:
    """With only the head fetched, the event's commit is the newest known base."""
    update_topic(story)
    clone_topic(story)
    run_git(story.top, "update-ref", "-d", "refs/remotes/origin/main")

    base = story.find()

    assert base
    assert (base.sha, base.origin.split()[-3:]) == (story.stale, ["the", "event", "names"])


def test_a_head_that_is_merged_already_is_compared_with_the_payload(story: Story) -> None:
    """The base branch contains it by now, so their merge-base is the head itself."""
    run_git(story.top, "checkout", "--quiet", "main")
    run_git(story.top, "merge", "--quiet", "--no-ff", "--message", "merged", "topic")
    clone_topic(story)

    assert story.find_sha() == story.stale


def test_an_octopus_is_no_trial_merge(story: Story) -> None:
    """With a third parent the first one is no certain base: the payload's merge-base counts."""
    run_git(story.top, "checkout", "--quiet", "-b", "third", story.stale)
    add(story.top, "third")
    run_git(story.top, "checkout", "--quiet", "--detach", story.base)
    run_git(story.top, "merge", "--quiet", "--message", "octopus", "topic", "third")

    assert story.find_sha() == story.stale


def test_a_merge_of_another_head_is_no_trial_merge_of_this_one(story: Story) -> None:
    """A merge without the pull request's commit measures something else: refused."""
    story.head = "e" * 40

    with pytest.raises(UsageError, match="does not have the pull request's commit eeeeeeeeeeee") as caught:
        story.find()

    assert "without `ref:`" in caught.value.fix


def test_a_base_branch_that_is_checked_out_is_refused(story: Story) -> None:
    """As on pull_request_target: the base compared with itself would always be green."""
    run_git(story.top, "checkout", "--quiet", "main")

    with pytest.raises(UsageError, match="does not have the pull request's commit"):
        story.find()


def test_a_shallow_clone_without_the_first_parent_is_an_error(story: Story) -> None:
    """No other commit is taken; the fix is a deeper clone."""
    story.top = clone(story, depth=1)

    with pytest.raises(UsageError, match=f"the base commit {story.base} is not in this clone") as caught:
        story.find()

    assert "fetch-depth: 0" in caught.value.fix


def test_a_clone_of_two_commits_is_enough_for_a_trial_merge(story: Story) -> None:
    """It has the first parent, and nothing else is needed."""
    story.top = clone(story, depth=2)

    assert story.find_sha() == story.base


def test_a_shallow_clone_of_the_head_is_an_error(story: Story) -> None:
    """In part of the history git may find another merge-base."""
    run_git(story.top, "branch", "--force", "trial", "topic")
    path = story.top.parent / "clone"
    command = ["git", "clone", "--quiet", "--depth=1", "--branch=topic", f"file://{story.top}", str(path)]
    subprocess.run(command, check=True)
    run_git(path, "fetch", "--quiet", "--depth=1", "origin", "main")
    story.top = path

    with pytest.raises(UsageError, match="this clone is shallow: it does not show where") as caught:
        story.find(story.make_event(sha=story.base))

    assert "fetch-depth: 0" in caught.value.fix


def test_a_shallow_clone_does_not_show_that_a_group_has_a_commit(story: Story) -> None:
    """It is not refused as another commit than the group's: the fix is another depth."""
    story.top = clone(story, depth=1)
    group = {"base_sha": story.base, "head_sha": story.stale}

    with pytest.raises(UsageError, match="this clone is shallow: it does not show whether HEAD has"):
        story.find({"merge_group": group})


def test_git_may_compute_for_two_minutes_where_it_reads_history(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large repository may lie on a cold disk."""
    limits: dict[str, float] = {}

    def note_limit(name: str) -> None:
        ask = getattr(base_commit, name)

        def ask_noted(top: Path, *arguments: str, **options: Any) -> object:
            if "limit_s" in options:
                limits[arguments[0]] = options["limit_s"]
            return ask(top, *arguments, **options)

        monkeypatch.setattr(base_commit, name, ask_noted)

    for name in ("is_true", "read_git"):
        note_limit(name)
    update_topic(story)

    story.find(story.make_event(sha=story.base))

    assert limits == {"cat-file": 120.0, "merge-base": 120.0}


def test_unrelated_histories_are_an_error(story: Story) -> None:
    """The change left no commit of main."""
    run_git(story.top, "checkout", "--quiet", "--orphan", "other")
    story.head = commit(story.top, "unrelated")

    with pytest.raises(UsageError, match="have no commit in common"):
        story.find()


def test_a_merge_groups_base_is_the_queues(story: Story) -> None:
    """A group may hold several changes: the base is what all of them are put on, not the first parent."""
    run_git(story.top, "checkout", "--quiet", "-b", "second", story.stale)
    add(story.top, "second")
    run_git(story.top, "checkout", "--quiet", "--detach", story.merge)
    run_git(story.top, "merge", "--quiet", "--no-ff", "--message", "second of the group", "second")
    group = {"base_sha": story.base, "head_sha": run_git(story.top, "rev-parse", "HEAD")}

    base = story.find({"merge_group": group})

    assert base == BaseCommit(sha=story.base, origin="what the merge queue puts this group on")


@pytest.mark.parametrize("which", ["base_sha", "head_sha"])
def test_a_merge_group_that_is_not_checked_out_is_refused(story: Story, which: str) -> None:
    """Head and base must both be in what is checked out."""
    run_git(story.top, "checkout", "--quiet", "-b", "later", story.base)
    other = add(story.top, "later")
    run_git(story.top, "checkout", "--quiet", "--detach", story.merge)
    group = {"base_sha": story.base, "head_sha": story.merge, which: other}

    with pytest.raises(UsageError, match="does not have the merge group's"):
        story.find({"merge_group": group})


@pytest.mark.parametrize("event", [{"ref": "refs/heads/main"}, {"pull_request": None}, {}])
def test_a_push_or_a_dispatch_has_no_base(tmp_path: Path, event: dict[str, Any]) -> None:
    """Git is not even asked."""
    assert find_base(event, tmp_path) is None


@pytest.mark.parametrize(
    "pull",
    [
        {},
        {"base": []},
        {"base": {"sha": "b"}, "head": {"sha": "h"}},
        {"base": {"sha": "b" * 40}, "head": {"sha": "h"}},
        {"base": {"sha": "b"}, "head": {"sha": "a" * 40}},
    ],
)
def test_a_pull_request_without_commits_is_an_error(story: Story, pull: dict[str, Any]) -> None:
    """It must not be taken for a push, which has no base."""
    with pytest.raises(UsageError, match="names no base and head commit"):
        story.find({"pull_request": pull})


def test_no_repository_is_reported(tmp_path: Path) -> None:
    """Without actions/checkout, or above its `path:`, no base can be read."""
    event = {"pull_request": {"base": {"sha": "b" * 40}, "head": {"sha": "a" * 40}}}

    with pytest.raises(UsageError, match="is not in a git repository"):
        find_base(event, tmp_path)


def test_a_git_that_does_not_answer_is_the_machines_fault(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code is 4: nothing is known about the change."""
    monkeypatch.setenv("PATH", str(story.top))

    with pytest.raises(MachineError, match="git cannot be run"):
        story.find()


@pytest.mark.parametrize(
    ("event", "head"),
    [
        ({"pull_request": {"head": {"sha": "h"}}}, "h"),
        ({"merge_group": {"head_sha": "h"}}, "h"),
        ({"ref": "refs/heads/main"}, ""),
        ({"pull_request": {"head": []}}, ""),
    ],
)
def test_the_head_is_the_events(event: dict[str, object], head: str) -> None:
    """A pull request and a merge group have one; a push has none."""
    assert find_head_sha(event) == head
