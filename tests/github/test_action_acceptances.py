"""The acceptances that a check finds in its clone: real git, as actions/checkout fetches it, and no token."""

import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import records
from action.checkout import check_out, make_clone
from fake.git_routes import BareRepository
from records import make_comparison

from gate.action import base_commit
from gate.action.base_commit import REF, AcceptedFiles, collect_accepted
from gate.action.inputs import ActionStep, parse_inputs
from gate.action.modes import make_check_arguments, make_compare_arguments
from gate.action.rules import RuleSource, open_rule_source
from gate.action.step import report_rules
from gate.cli.parser import make_parser
from gate.decide.conclude.coverage import is_lack_accepted
from gate.fingerprint import compute_environment_id
from gate.project.config import make_default_config
from gate.records.cases import Acceptance, Case, Metric
from gate.records.verdict import Reason, Status
from gate.store.commit_files import BRANCH, load_commit_file, name_commit_file, render_commit_file
from gate.store.policy import load_policy
from gate.store.rules import BaseRules
from tests.git import run_git
from tests.hosts import CPU_HOST

LATER = (datetime.now(UTC) + timedelta(days=300)).date().isoformat()
ENTRY = replace(records.ENTRY, expires=LATER, environment=compute_environment_id(CPU_HOST))
LACK = replace(ENTRY, metric=None, allowance=0.0, reason="new", author="bob")
NEW = make_comparison(
    Case(id=ENTRY.case, model="bert"), Metric.COMPILED_LATENCY, Status.NEW, Reason.NO_BASELINE
)


class Hosted:
    """A repository that is served under its GitHub address, and a runner's clone of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git = BareRepository.create(root / "octo-org" / "models")
        # As on GitHub, where a commit may be fetched by its id.
        self.git.run("config", "uploadpack.allowAnySHA1InWant", "true")
        self.url = f"file://{root}/octo-org/models"
        self.environ = {"GITHUB_SERVER_URL": f"file://{root}", "GITHUB_REPOSITORY": "octo-org/models"}
        self.clone = make_clone(root / "clone", self.url)
        self.base = self.git.commit({"model.py": "x = 1\n"}, branch="main")

    def push(self, text: str, branch: str = "topic", start: str = "main") -> str:
        """Push a commit to a branch, which begins at ``start``."""
        if not self.git.find_ref(f"heads/{branch}"):
            self.git.run("branch", branch, start)
        return self.git.commit({f"{branch}.py": text}, branch=branch)

    def merge(self, first: str, second: str) -> str:
        """Make a trial merge, as GitHub does: on no branch."""
        tree = self.git.run("merge-tree", "--write-tree", first, second)
        return self.git.run("commit-tree", tree, "-p", first, "-p", second, "-m", "Merge")

    def squash(self, first: str, second: str) -> str:
        """Squash a commit onto another, as a merge queue may."""
        tree = self.git.run("merge-tree", "--write-tree", first, second)
        return self.git.run("commit-tree", tree, "-p", first, "-m", "A change (#7)")

    def accept(self, commit: str, *accepted: Acceptance, text: str = "", name: str = "") -> None:
        """Store acceptances of a commit, or any text, on the branch of acceptances."""
        name = name or name_commit_file(commit)
        self.git.commit({name: text or render_commit_file(commit, accepted)}, branch=BRANCH)

    def collect(self, event: dict[str, object]) -> AcceptedFiles:
        return collect_accepted(event, self.environ, self.root / "rules")

    def check(self, head: str, checked_out: str = "") -> AcceptedFiles:
        """Check the pull request's head out, in its trial merge, and collect."""
        check_out(self.clone, checked_out or self.merge(self.base, head))
        return self.collect(make_pull(head))


def make_pull(head: str) -> dict[str, object]:
    # GitHub's word for the base may be stale; it does not matter here.
    return {"pull_request": {"head": {"sha": head}, "base": {"sha": "b" * 40}}}


@pytest.fixture
def hosted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosted:
    """The test works in the clone."""
    hosted = Hosted(tmp_path)
    monkeypatch.chdir(hosted.clone)
    return hosted


def load_all(accepted: AcceptedFiles) -> dict[str, list[str]]:
    """The authors of the acceptances of each commit."""
    files = [load_commit_file(Path(file)) for file in accepted.files]
    return {file.commit: [acceptance.author for acceptance in file.accepted] for file in files}


def test_the_acceptance_of_the_head_is_found_in_its_trial_merge(hosted: Hosted) -> None:
    """A clone with all branches has it, for a fork's pull request too."""
    head = hosted.push("x = 2")
    hosted.accept(head, ENTRY)

    accepted = hosted.check(head)

    assert load_all(accepted) == {head: ["ada"]}
    assert accepted.notes == (f"Accepted of commit {head[:12]}: 1 of what regressed, by ada.",)
    assert accepted.warnings == ()


def test_the_head_itself_may_be_checked_out(hosted: Hosted) -> None:
    """With ``ref: github.event.pull_request.head.sha``."""
    head = hosted.push("x = 2")
    hosted.accept(head, LACK)

    accepted = hosted.check(head, checked_out=head)

    assert accepted.notes == (f"Accepted of commit {head[:12]}: the lack of baselines, by bob.",)


def test_without_the_branch_nothing_is_accepted_and_a_note_says_so(hosted: Hosted) -> None:
    """Most repositories have no such branch, so it is no warning."""
    accepted = hosted.check(hosted.push("x = 2"))
    assert accepted == AcceptedFiles(
        notes=(f"Nothing is accepted of this commit: this clone has no branch {BRANCH}.",)
    )


def test_a_clone_that_cannot_have_the_branch_is_noted(hosted: Hosted) -> None:
    """With ``fetch-depth: 2`` the base's rules are there and acceptances are not."""
    head = hosted.push("x = 2")
    hosted.accept(head, ENTRY)
    merge = hosted.merge(hosted.base, head)
    run_git(hosted.clone, "fetch", "--quiet", "--depth=2", "origin", f"+{merge}:refs/remotes/pull/7/merge")
    run_git(hosted.clone, "checkout", "--quiet", "--detach", merge)

    (note,) = hosted.collect(make_pull(head)).notes
    assert note.endswith("would not show it without `fetch-depth: 0` of actions/checkout.")


def test_a_push_is_another_commit(hosted: Hosted) -> None:
    """The commit before the push was accepted."""
    old = hosted.push("x = 2")
    hosted.accept(old, ENTRY)
    new = hosted.push("x = 3")

    accepted = hosted.check(new)

    assert (accepted.files, accepted.notes) == ((), (f"Nothing is accepted of commit {new[:12]}.",))


def test_a_reverted_acceptance_is_gone(hosted: Hosted) -> None:
    """The tip of the branch counts, not its history."""
    head = hosted.push("x = 2")
    hosted.accept(head, ENTRY)
    hosted.check(head)
    hosted.git.run("branch", "--force", BRANCH, hosted.git.commit({"README": "x"}, branch="empty"))

    assert hosted.check(head).files == ()


def test_a_branch_that_is_removed_is_pruned_from_a_kept_clone(hosted: Hosted) -> None:
    """A self-hosted runner fetches into the clone of the job before."""
    head = hosted.push("x = 2")
    hosted.accept(head, ENTRY)
    hosted.check(head)
    hosted.git.run("update-ref", "-d", f"refs/heads/{BRANCH}")

    assert hosted.check(head).files == ()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_forged_ref_in_a_kept_clone_does_not_survive_the_fetch(hosted: Hosted, is_there: bool) -> None:
    """An earlier job's code wrote an acceptance into .git: the fetch overwrites or prunes it."""
    head = hosted.push("x = 2")
    other = hosted.push("x = 1", branch="other")
    if is_there:
        hosted.accept(other, ENTRY)
    hosted.check(other)
    blob = hosted.clone / "forged.yml"
    blob.write_text(render_commit_file(head, (ENTRY,)))
    run_git(
        hosted.clone,
        "update-index",
        "--add",
        "--cacheinfo",
        f"100644,{run_git(hosted.clone, 'hash-object', '-w', str(blob))},{name_commit_file(head)}",
    )
    forged = run_git(hosted.clone, "commit-tree", run_git(hosted.clone, "write-tree"), "-m", "Forged")
    run_git(hosted.clone, "update-ref", REF, forged)
    assert hosted.collect(make_pull(head)) != AcceptedFiles()

    assert hosted.check(head).files == ()


def test_a_replaced_object_in_a_kept_clone_is_not_read(hosted: Hosted) -> None:
    """A fetch keeps refs/replace, but the replacement is not read."""
    head = hosted.push("x = 2")
    hosted.accept(head)
    hosted.check(head)
    forged = hosted.clone / "forged.yml"
    forged.write_text(render_commit_file(head, (ENTRY,)))
    real = run_git(hosted.clone, "rev-parse", f"{REF}:{name_commit_file(head)}")
    run_git(hosted.clone, "replace", real, run_git(hosted.clone, "hash-object", "-w", str(forged)))
    assert "worth it" in run_git(hosted.clone, "show", f"{REF}:{name_commit_file(head)}")

    assert load_all(hosted.check(head)) == {head: []}


@pytest.mark.parametrize(
    ("url", "is_own"),
    [
        ("https://github.com/octo-org/models", True),
        ("https://github.com/Octo-Org/Models.git", True),
        ("https://x-access-token:secret@github.com/octo-org/models", True),
        ("git@github.com:octo-org/models.git", True),
        ("org-123@github.com:octo-org/models.git", True),
        ("https://github.com/mallory/models", False),
        ("https://github.com/octo-org/models-too", False),
        ("https://evil.example/octo-org/models", False),
        ("git@github.com:mallory/models.git", False),
        ("git@evil.example:octo-org/models.git", False),
        ("/srv/octo-org/models", False),
    ],
)
def test_a_forks_branch_accepts_nothing(hosted: Hosted, url: str, is_own: bool) -> None:
    """``origin`` must be the repository itself, under any of its addresses."""
    head = hosted.push("x = 2")
    hosted.accept(head, ENTRY)
    hosted.check(head)
    run_git(hosted.clone, "remote", "set-url", "origin", url)
    hosted.environ["GITHUB_SERVER_URL"] = "https://github.com"

    accepted = hosted.collect(make_pull(head))

    if is_own:
        assert load_all(accepted) == {head: ["ada"]}
    else:
        text = "No acceptance counts: `origin` of this clone is another repository."
        assert accepted == AcceptedFiles(warnings=(text,))


@pytest.mark.parametrize("url", ["https://github.com/", "git@github.com:"])
def test_a_job_without_a_repository_owns_none(hosted: Hosted, url: str) -> None:
    """An address that ends where the name would begin is of no repository."""
    run_git(hosted.clone, "remote", "set-url", "origin", url)

    assert not base_commit._is_own_repository(hosted.clone, {"GITHUB_SERVER_URL": "https://github.com"})


def test_the_last_fifty_acceptances_are_looked_for_among_squashed_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each accepted commit once, the newest first; a file of another name is none."""
    asked: list[str] = []
    names = [name_commit_file(commit * 40) for commit in "bab"]

    def read(_: Path, *arguments: str, **__: float) -> bytes:
        asked.extend(arguments)
        return "\n".join(["", names[0], "accepted/readme.yml", *names[1:]]).encode()

    monkeypatch.setattr(base_commit, "read_git", read)

    assert base_commit._list_accepted(Path()) == ("b" * 40, "a" * 40)
    assert "--max-count=50" in asked


def test_another_commit_than_the_events_is_not_covered(hosted: Hosted) -> None:
    """In a re-run a branch's name in ``ref:`` is whatever was pushed since."""
    old = hosted.push("x = 2")
    hosted.accept(old, ENTRY)
    new = hosted.push("x = 3")

    accepted = hosted.check(old, checked_out=new)

    text = f"No acceptance counts: what is checked out is neither {old[:12]} nor a merge of it."
    assert accepted == AcceptedFiles(warnings=(text,))


@pytest.mark.parametrize(
    ("text", "below", "words"),
    [
        ("version: 1\n", "", "the key 'commit' is missing"),
        (render_commit_file("c" * 40, (ENTRY,)), "", "another commit than"),
        ("#" * 1_100_000, "", "more than any file of acceptances"),
        ("\x00", "", "is not YAML"),
        (render_commit_file("c" * 40, (ENTRY,)).replace("0.33", "-1"), "", ""),
        ("x", "/x", ""),  # a directory in the file's place
    ],
)
def test_a_broken_file_is_reported_and_does_not_count(
    hosted: Hosted, text: str, below: str, words: str
) -> None:
    """Anybody who can push there can write anything."""
    head = hosted.push("x = 2")
    hosted.accept(head, text=text, name=f"{name_commit_file(head)}{below}")

    accepted = hosted.check(head)

    assert (accepted.files, accepted.notes) == ((), ())
    (warning,) = accepted.warnings
    assert warning.startswith(f"What was accepted of commit {head[:12]} does not count: ")
    assert words in warning


def test_a_file_that_the_clone_lacks_is_a_warning(hosted: Hosted) -> None:
    """A partial clone may lack the branch's files, and its remote may be out of reach."""
    hosted.git.run("config", "uploadpack.allowFilter", "true")
    run_git(hosted.clone, "config", "remote.origin.promisor", "true")
    run_git(hosted.clone, "config", "remote.origin.partialclonefilter", "blob:none")
    head = hosted.push("x = 2")
    hosted.accept(head, ENTRY)
    check_out(hosted.clone, hosted.merge(hosted.base, head))
    (hosted.root / "octo-org" / "models").rename(hosted.root / "gone")

    accepted = hosted.collect(make_pull(head))

    (warning,) = accepted.warnings
    assert (accepted.files, accepted.notes) == ((), ())
    assert warning.startswith(f"What was accepted of commit {head[:12]} does not count: ")


def test_events_without_a_change_have_no_acceptances(hosted: Hosted) -> None:
    """A push or a dispatch judges what is merged already."""
    head = hosted.push("x = 2")
    hosted.accept(head, ENTRY)
    check_out(hosted.clone, head)

    assert hosted.collect({"ref": "refs/heads/topic"}) == AcceptedFiles()


# --- merge queues ---


def collect_group(hosted: Hosted, head: str) -> AcceptedFiles:
    hosted.git.run("branch", "--force", "gh-readonly-queue/main/pr-7", head)
    check_out(hosted.clone, head, is_on_branch=True)
    return hosted.collect({"merge_group": {"head_sha": head, "base_sha": hosted.base}})


def test_a_merge_group_has_the_acceptances_of_the_pull_requests_in_it(hosted: Hosted) -> None:
    """The pull requests are the second parents of the group's merges; one of two was accepted."""
    first, second = hosted.push("x = 2"), hosted.push("y = 2", branch="other")
    hosted.accept(first, ENTRY)
    head = hosted.merge(hosted.merge(hosted.base, first), second)

    assert load_all(collect_group(hosted, head)) == {second: [], first: ["ada"]}


@pytest.fixture(params=[False, True], ids=["git", "old git"])
def is_old(tmp_path: Path, request: pytest.FixtureRequest) -> bool:
    """Whether ``bin`` has Ubuntu 22.04's git, which takes ``--write-tree`` for an unknown commit."""
    if request.param:
        script = tmp_path / "bin" / "git"
        script.parent.mkdir()
        unknown = r"""case "$*" in
*" merge-tree --write-tree "*) echo "fatal: unknown rev --write-tree" >&2; exit 128;;
*" version") echo "git version 2.34.1"; exit;;
esac"""
        script.write_text(f'#!/bin/sh\n{unknown}\nexec "{shutil.which("git")}" "$@"\n')
        script.chmod(0o755)
    return bool(request.param)


@pytest.mark.parametrize("is_pushed", [False, True])
def test_what_was_squashed_into_a_group_is_found_by_its_files(
    hosted: Hosted, monkeypatch: pytest.MonkeyPatch, is_old: bool, is_pushed: bool
) -> None:
    """A squashed commit changes the pull request's files but has no parent in it.

    An old git cannot merge without a checkout; a warning says what it may miss.
    """
    first, second = hosted.push("x = 2"), hosted.push("y = 2", branch="other")
    hosted.accept(second, ENTRY)
    hosted.accept(first, ENTRY)
    head = hosted.squash(
        hosted.squash(hosted.base, first), hosted.push("y = 3", "other") if is_pushed else second
    )
    monkeypatch.setenv("PATH", str(hosted.root / "bin"), prepend=os.pathsep)

    accepted = collect_group(hosted, head)

    assert load_all(accepted) == (
        {head: [], first: ["ada"]} if is_pushed else {second: ["ada"], first: ["ada"]}
    )
    if is_pushed:
        assert f"Nothing is accepted of commit {head[:12]}." in accepted.notes
    warned = "git version 2.34.1 is older than 2.38: of what a queue squashes,"
    assert [warning.startswith(warned) for warning in accepted.warnings] == [True] * is_old


def takes_lack(accepted: AcceptedFiles) -> bool:
    return is_lack_accepted([NEW], load_policy(make_default_config(), accepted.files))


def test_a_lack_of_baselines_is_taken_for_a_group_only_if_it_was_for_each(hosted: Hosted) -> None:
    """The second pull request of the group was never accepted."""
    first, second = hosted.push("x = 2"), hosted.push("y = 2", branch="other")
    hosted.accept(first, LACK)
    merged = hosted.merge(hosted.base, first)

    assert takes_lack(collect_group(hosted, merged))
    assert not takes_lack(collect_group(hosted, hosted.merge(merged, second)))


def test_a_group_with_an_acceptance_that_cannot_be_used_takes_no_lack_of_baselines(hosted: Hosted) -> None:
    """The first pull request's acceptance alone is not the group's."""
    first, second = hosted.push("x = 2"), hosted.push("y = 2", branch="other")
    hosted.accept(first, LACK)
    hosted.accept(second, text="version: 1\n")
    accepted = collect_group(hosted, hosted.merge(hosted.merge(hosted.base, first), second))
    assert "does not count" in accepted.warnings[0]
    assert not takes_lack(accepted)


# --- what the check does with them ---


def test_the_check_is_given_what_was_accepted(hosted: Hosted, capsys: pytest.CaptureFixture[str]) -> None:
    """The files exist while the rules are held, and are options of the command; the log names the author."""
    head = hosted.push("x = 2")
    hosted.accept(head, ENTRY)
    hosted.check(head)
    temporary = hosted.root / "temp"
    temporary.mkdir()
    environ = hosted.environ | {"RUNNER_TEMP": str(temporary), "INPUT_BASELINE_REF": "head"}
    environ |= {"INPUT_COMMENT_KEY": "slow"}
    step = ActionStep(inputs=parse_inputs(environ), environ=environ, event=make_pull(head))

    with open_rule_source(step) as rules:
        arguments = make_check_arguments(step.inputs, rules)
        options = make_parser().parse_args(arguments)
        (file,) = options.accepted
        assert options.gate == "gate.yml:slow"
        assert load_all(rules.accepted) == {head: ["ada"]}
        report_rules(step, rules)

    assert not Path(file).exists()
    assert capsys.readouterr().out == f"Accepted of commit {head[:12]}: 1 of what regressed, by ada.\n"


def test_the_judgement_of_shards_is_given_them_too() -> None:
    """They come before the paths that it compares."""
    rules = BaseRules(config=make_default_config(), cases=())
    source = RuleSource(rules=rules, accepted=AcceptedFiles(files=("/a.yml", "/b.yml")))
    inputs = parse_inputs({"INPUT_MODE": "judge"})

    arguments = make_compare_arguments(inputs, source, ("-b", "run.json"))

    assert make_parser().parse_args(arguments).accepted == ["/a.yml", "/b.yml"]


def test_what_does_not_count_is_a_warning(hosted: Hosted, capsys: pytest.CaptureFixture[str]) -> None:
    """The check goes on without it."""
    base_rules = BaseRules(config=make_default_config(), cases=())
    rules = RuleSource(rules=base_rules, accepted=AcceptedFiles(warnings=("No acceptance counts: x.",)))
    environ = hosted.environ
    step = ActionStep(inputs=parse_inputs(environ), environ=environ, event={})

    report_rules(step, rules)

    assert capsys.readouterr().out == "::warning title=compile-gate::No acceptance counts: x.\n"
