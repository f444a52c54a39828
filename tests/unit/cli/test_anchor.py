"""``baseline anchor`` and ``ab --anchor``, in a real repository with actors for workers."""

import re
import shlex
from pathlib import Path

import pytest

from gate.files.codec import VERDICT
from gate.publish.shown import make_shown
from gate.records.codes import Code
from gate.store.anchor import AnchorFile, load_anchor, save_anchor
from tests.unit.cli.conftest import CASE_ID, Sandbox
from tests.unit.cli.sides import SLOWER_S, TOMORROW

OLD = "2026-01-01T00:00:00Z"


@pytest.fixture
def released(sandbox: Sandbox) -> Sandbox:
    """A project with a tagged commit and one after it."""
    sandbox.begin()
    sandbox.git("tag", "v1.2")
    sandbox.git("commit", "--quiet", "--allow-empty", "--message", "Go on")
    return sandbox


def load(sandbox: Sandbox) -> AnchorFile:
    anchor = load_anchor(sandbox.top / "baselines")
    assert anchor is not None
    return anchor


def read_commit(sandbox: Sandbox, ref: str) -> str:
    """The commit of a tag or branch of a new repository."""
    return (sandbox.top / ".git" / "refs" / ref).read_text(encoding="utf-8").strip()


def test_a_tag_becomes_its_commit_and_keeps_its_name(released: Sandbox) -> None:
    """The whole commit is written, since a tag can be moved."""
    assert released.run("baseline", "anchor", "v1.2", "--reason", "the release of March") == 0
    anchor = load(released)
    assert (anchor.commit, anchor.name) == (read_commit(released, "tags/v1.2"), "v1.2")
    output = released.read().out
    assert output.startswith(f"The anchor is v1.2 ({anchor.commit[:7]}), recorded ")
    assert "commit it. Compare with it: compile-gate ab --anchor" in output


def test_the_command_that_compares_with_it_names_the_same_baselines(released: Sandbox) -> None:
    """As printed it finds the anchor: nothing got worse."""
    assert released.run("baseline", "anchor", "v1.2", "--baselines", "other one", "--reason", "r") == 0
    (command,) = re.findall(r"Compare with it: compile-gate (.*)", released.read().out)
    assert command == "ab --anchor --baselines 'other one'"
    assert released.run(*shlex.split(command), "--quiet") == 0


def test_without_a_name_it_is_the_commit_that_is_checked_out(released: Sandbox) -> None:
    """It has no tag, and so no name."""
    assert released.run("baseline", "anchor", "--reason", "r") == 0
    assert (load(released).commit, load(released).name) == (read_commit(released, "heads/main"), "")


def test_what_an_anchor_replaces_is_reported_with_its_age(released: Sandbox) -> None:
    """Moving an anchor accepts every regression since the old one."""
    old = AnchorFile(version=1, commit="a" * 40, name="v1.1", created=OLD, reason="r")
    save_anchor(released.top / "baselines", old)
    assert released.run("baseline", "anchor", "v1.2", "--reason", "r") == 0
    assert "It replaces v1.1 (aaaaaaa) (" in (output := released.read().out)
    assert " days old): what got worse in between passes from now on." in output


def test_a_commit_that_head_was_not_made_from_is_no_anchor(released: Sandbox) -> None:
    """Another branch's commit is no earlier state of head."""
    released.git("checkout", "--quiet", "-b", "other", "v1.2")
    released.git("commit", "--quiet", "--allow-empty", "--message", "Elsewhere")
    released.git("checkout", "--quiet", "main")
    assert released.run("baseline", "anchor", "other", "--reason", "r") == 2
    assert "HEAD was not made from other (" in released.read().err
    assert load_anchor(released.top / "baselines") is None


def test_the_list_of_baselines_names_the_anchor(released: Sandbox) -> None:
    """Below the table."""
    save_anchor(
        released.top / "baselines",
        AnchorFile(version=1, commit="a" * 40, created=OLD, author="Ada", reason="a release"),
    )
    assert released.run("baseline", "show") == 0
    assert "\nanchor: aaaaaaa, recorded 2026-01-01 (" in released.read().out


def test_head_is_compared_with_the_anchor_and_the_report_names_it(released: Sandbox) -> None:
    """A slowdown since the release is a regression; the headline names the anchor."""
    assert released.run("baseline", "anchor", "v1.2", "--reason", "the release of March") == 0
    released.plant("slowdown", SLOWER_S)
    released.read()
    assert released.run("ab", "--anchor", "--quiet") == 10
    output = " ".join(released.read().out.split())
    short = load(released).commit[:7]
    assert f"against the anchor v1.2 ({short})." in output
    report = (released.top / "out" / "report.md").read_text(encoding="utf-8")
    assert f"Compared with the anchor v1.2 ({short}), recorded " in report
    assert "the release of March. A change is the sum of all commits since then." in report


def commit_slowdown(sandbox: Sandbox) -> str:
    """Commit an anchor, a slowdown and one more commit; return the second one."""
    assert sandbox.run("baseline", "anchor", "v1.2", "--reason", "r") == 0
    sandbox.git("add", "baselines")
    sandbox.git("commit", "--quiet", "--message", "Anchor")
    sandbox.plant("slowdown", SLOWER_S)
    sandbox.git("add", "fault.json")
    sandbox.git("commit", "--quiet", "--message", "Make it slower")
    sandbox.git("commit", "--quiet", "--allow-empty", "--message", "Go on again")
    return sandbox.git("rev-parse", "HEAD~1").strip()


def test_the_commit_since_the_anchor_that_did_it_is_the_first_cause(released: Sandbox) -> None:
    """The time left goes to a bisection; what is published has the commit, and not its subject."""
    commit = commit_slowdown(released)
    assert released.run("ab", "--anchor", "--quiet") == 10
    verdict = VERDICT.load(released.top / "out" / "verdict.json")
    cause = verdict.causes[0]
    assert (cause.case_id, cause.fact.code) == (CASE_ID, Code.FIRST_BAD)
    assert cause.fact.names == {"commit": (commit,), "subject": ("Make it slower",)}
    assert make_shown(verdict).causes[0].fact.names == {"commit": (commit,)}


@pytest.mark.parametrize("options", [("--fail-fast",), ("--minutes", "0.5")])
def test_without_time_nothing_is_bisected(released: Sandbox, options: tuple[str, ...]) -> None:
    """The verdict stands; who wants the first conviction waits for no commit."""
    commit_slowdown(released)
    assert released.run("ab", "--anchor", "--quiet", *options) == 10
    assert not (released.top / "out" / "bisect").exists()


def test_what_is_uncommitted_is_not_bisected(released: Sandbox) -> None:
    """No commit has it."""
    commit_slowdown(released)
    (released.top / "actor.py").write_text("# edited\n", encoding="utf-8")
    assert released.run("ab", "--anchor", "--quiet") == 10
    assert not (released.top / "out" / "bisect").exists()


def test_a_named_head_is_compared_with_the_anchor(released: Sandbox) -> None:
    """A name given with --anchor is head's: the release itself, whatever the working tree is."""
    assert released.run("baseline", "anchor", "v1.2", "--reason", "r") == 0
    released.plant("slowdown", SLOWER_S)
    assert released.run("ab", "--anchor", "v1.2", "--quiet") == 0
    assert "against the anchor v1.2 (" in " ".join(released.read().out.split())


def test_an_accepted_change_stays_accepted_against_the_anchor(released: Sandbox) -> None:
    """accepted.yml counts in every comparison."""
    assert released.run("baseline", "anchor", "v1.2", "--reason", "r") == 0
    released.plant("graph_break")
    assert released.run("ab", "--anchor", "--quiet") == 10
    accept = ("baseline", "accept", CASE_ID, "graph_breaks", "--allow", "2", "--reason", "a print")
    assert released.run(*accept, "--expires", TOMORROW) == 0
    assert released.run("ab", "--anchor", "--quiet") == 0


def test_an_anchor_that_this_clone_lacks_is_reported_with_file_key_and_fix(
    released: Sandbox, tmp_path: Path
) -> None:
    """In a shallow clone the fix is to fetch more."""
    assert released.run("baseline", "anchor", "v1.2", "--reason", "r") == 0
    commit = load(released).commit
    released.git("add", "baselines")
    released.git("commit", "--quiet", "--message", "Anchor")
    clone = tmp_path / "clone"
    released.git("clone", "--quiet", "--depth=1", f"file://{released.top}", str(clone))
    released.read()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(clone)
        assert released.run("ab", "--anchor", "--quiet") == 2
    output = released.read().err
    assert f"baselines/anchor.yml: commit: {commit} is not in this repository" in output
    assert "This clone is shallow: `git fetch --unshallow`" in output


@pytest.mark.parametrize("reason", ["", "  ", "\ud800"])
def test_an_anchor_that_could_not_be_read_back_is_not_written(released: Sandbox, reason: str) -> None:
    """With an unset variable as its reason, every later check would end with exit code 2."""
    assert released.run("baseline", "anchor", "v1.2", "--reason", reason) == 2
    assert "--reason: " in released.read().err
    assert load_anchor(released.top / "baselines") is None
