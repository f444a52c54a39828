"""Names of commits, resolved in the repository that measured code lies in.

Whatever asks git may raise MachineError: git cannot be run, or does not answer in time.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gate.errors import GateError, MachineError, UsageError
from gate.git import GitAnswer, ask_git, is_true, make_git_error

SHORT_CHARS = 7  # of a commit, as git shows it

# What the branch that changes are merged into may be called, on each remote that changes are made for. A
# remote's own answer (`origin/HEAD`) is what a clone sets; a checkout in CI does not, and no fetch moves it.
_MAIN_BRANCHES = ("HEAD", "main", "master")
_REMOTES = ("origin", "upstream")
_IS_ANCESTOR = ("merge-base", "--is-ancestor")
_GITHUB = re.compile(r"(?:https://|ssh://git@|git@)github\.com[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_WHOLE_CLONE = "`fetch-depth: 0` of actions/checkout, `GIT_DEPTH: 0` in GitLab CI"
_FIX = "Run in a checkout; or name, in place of a branch or commit, a directory with its files."


class NothingDiffersError(UsageError):
    def __init__(self, head: str, main: str) -> None:
        super().__init__(
            f"{head} is part of {main}, and nothing is uncommitted",
            "To compare with an earlier commit, name it: compile-gate ab HEAD~1.",
        )
        self.main = main


@dataclass(frozen=True, kw_only=True, slots=True)
class Revision:
    """With ``is_merge_base``, head left ``name`` there."""

    name: str
    commit: str
    is_merge_base: bool = False
    other: str = ""  # of a main branch: another one, which has neither more of head's history nor less

    @property
    def label(self) -> str:
        """For a reader: ``main (1a2b3c4)``."""
        if self.name == self.commit:
            return f"commit {self.commit[:SHORT_CHARS]}"
        name = f"merge-base with {self.name}" if self.is_merge_base else self.name
        return f"{name} ({self.commit[:SHORT_CHARS]})"


def get_top(directory: Path) -> Path:
    """Raises UsageError where there is no checkout around, or git does not trust it."""
    answer = ask_git(directory, "rev-parse", "--show-toplevel")
    if not answer.is_good:
        raise _make_error(directory, answer)
    return Path(answer.said)


def resolve_ref(directory: Path, ref: str) -> Revision:
    """Here or on ``origin``.

    Raises:
        UsageError: No repository, or no such ref.
    """
    get_top(directory)
    if revision := find_ref(directory, ref):
        return revision
    fix = _advise_fetching(directory, ref)
    raise UsageError(f"there is no branch, tag or commit {ref!r} in {directory.absolute()}", fix)


def find_ref(directory: Path, ref: str) -> Revision | None:
    """Here or on ``origin``."""
    # HEAD~1 that is missing here is not the remote's HEAD~1.
    names = (ref,) if ref.startswith(("HEAD", "@")) else (ref, f"origin/{ref}")
    commits = ((name, _find_commit(directory, name)) for name in names)
    return next((Revision(name=name, commit=commit) for name, commit in commits if commit), None)


def _find_commit(directory: Path, name: str) -> str:
    answer = ask_git(directory, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if answer.status == -1:
        raise make_git_error(directory, answer, "rev-parse")
    return answer.said if answer.is_good else ""


def advise_missing(directory: Path, otherwise: str) -> str:
    """A shallow clone may lack a commit; else the fix is ``otherwise``."""
    if _is_shallow(directory):
        return f"This clone is shallow: `git fetch --unshallow`, or {_WHOLE_CLONE}."
    return otherwise


def _advise_fetching(directory: Path, ref: str) -> str:
    """A clone in CI often has only the branch that it is about."""
    spelling = "Check its spelling; `git branch --all` and `git tag` list what there is"
    is_branch = not ref.startswith(("HEAD", "@")) and not _COMMIT.fullmatch(ref)
    if not is_branch or not ask_git(directory, "remote", "get-url", "origin").is_good:
        return advise_missing(directory, f"{spelling}.")
    depth = "--unshallow " if _is_shallow(directory) else ""
    branch = ref.removeprefix("refs/remotes/").removeprefix("origin/")
    fetch = f"git fetch {depth}origin {shlex.quote(f'{branch}:refs/remotes/origin/{branch}')}"
    whole = f"; a whole clone has it: {_WHOLE_CLONE}" if depth else ""
    return f"If it is a branch of the remote: `{fetch}`{whole}. {spelling}."


def resolve_ancestor(directory: Path, ref: str, head: str = "HEAD") -> Revision:
    """Resolve a commit that ``head`` was made from, or that it is.

    Raises:
        UsageError: There is no such ref, or ``head`` was not made from it, as far as this clone shows.
    """
    ancestor, tip = resolve_ref(directory, ref), resolve_ref(directory, head)
    if is_true(directory, *_IS_ANCESTOR, ancestor.commit, tip.commit):
        return ancestor
    fix = advise_missing(directory, f"Name a commit that `git log {head}` lists: a release, for example.")
    raise UsageError(f"{head} was not made from {ancestor.label}", fix)


def find_tag(directory: Path, commit: str, ref: str = "") -> str:
    """``ref`` where it is a tag of the commit, else the first by name."""
    answer = ask_git(directory, "tag", "--points-at", commit)
    tags = [tag for tag in answer.said.splitlines() if tag.isprintable()] if answer.is_good else []
    return ref if ref in tags else next(iter(tags), "")


def resolve_base(directory: Path, ref: str, head: str = "HEAD") -> Revision:
    """Resolve the merge-base of ``head`` and ``ref``.

    Raises:
        UsageError: No such ref, no common history, or none in this shallow clone.
    """
    base, tip = resolve_ref(directory, ref), resolve_ref(directory, head)
    name = base.name.removeprefix("refs/remotes/").removeprefix("refs/heads/")
    answer = ask_git(directory, "merge-base", base.commit, tip.commit)
    if answer.is_good:
        # With several merge-bases git names the best first.
        return Revision(name=name, commit=answer.said.splitlines()[0], is_merge_base=True)
    if answer.status != 1:  # 1 is "there is none"; all else is trouble
        raise MachineError(
            f"git cannot find where {head} left {ref}: {answer.complaint}",
            "Check the repository: `git fsck`.",
        )
    if _is_shallow(directory):
        raise UsageError(
            f"this shallow clone lacks the commit where {head} left {name}",
            f"Run `git fetch --unshallow`, or {_WHOLE_CLONE}.",
        )
    raise UsageError(f"{head} and {name} have no commit in common", "Name a base that head was made from.")


def resolve_default_base(directory: Path, head: str = "HEAD", *, changed: bool = False) -> Revision:
    """Resolve where ``head`` left the main branch; there itself it is ``head``, if ``changed`` beyond that.

    Raises:
        UsageError: As :func:`resolve_base`; or no main branch is found, or head has not left it.
    """
    get_top(directory)
    if head == "HEAD" and not _find_commit(directory, head):
        raise UsageError("this repository has no commit yet", "Commit what is there: it is the base.")
    tip = resolve_ref(directory, head)
    main_branches = _list_main_branches(directory)
    if not main_branches:
        raise UsageError(
            "cannot find out which branch is your main branch",
            "Name it: `check --base BRANCH`, or `ab BRANCH`.",
        )
    by_remote = [_list_bases(directory, names, head) for names in main_branches]
    bases = [_choose_nearest(directory, bases) for bases in by_remote if bases]
    if not bases:
        return resolve_base(directory, main_branches[0][0], head)  # says what is wrong
    # A remote that has all of head already, as one that merged it, says where head left only if all have.
    base = _choose_nearest(directory, [base for base in bases if base.commit != tip.commit] or bases)
    if base.commit == tip.commit and not changed:
        raise NothingDiffersError(head, base.name)
    return base


def _list_main_branches(directory: Path) -> list[list[str]]:
    """By remote; local ones where no remote has any."""
    branch = ask_git(directory, "symbolic-ref", "--quiet", "HEAD").said
    key = f"branch.{branch.removeprefix('refs/heads/')}.remote"
    remotes = dict.fromkeys((*_REMOTES, ask_git(directory, "config", "--get", key).said))
    tracked = [
        _list_full_names(directory, [f"refs/remotes/{remote}/{name}" for name in _MAIN_BRANCHES])
        for remote in remotes
        if remote
    ]
    local = _list_full_names(directory, [f"refs/heads/{name}" for name in _MAIN_BRANCHES])
    # What is checked out is no base of itself, unless nothing else is there.
    local = [name for name in local if name != branch] or local
    return [names for names in tracked if names] or [[name] for name in local]


def _list_full_names(directory: Path, names: list[str]) -> list[str]:
    """List the full names of those that are commits: ``origin/HEAD`` stands for a branch."""
    existing = [name for name in names if _find_commit(directory, name)]
    full = [ask_git(directory, "rev-parse", "--symbolic-full-name", name).said or name for name in existing]
    return list(dict.fromkeys(full))


def _list_bases(directory: Path, names: Iterable[str], head: str) -> list[Revision]:
    """One without common history is skipped, unless the clone is shallow."""
    bases = []
    for name in names:
        try:
            bases.append(resolve_base(directory, name, head))
        except UsageError:
            if _is_shallow(directory):
                raise
    return bases


def _choose_nearest(directory: Path, bases: Sequence[Revision]) -> Revision:
    """Choose the commit that has the others behind it, or the first."""
    chosen = bases[0]
    for base in bases[1:]:
        if base.commit != chosen.commit and is_true(directory, *_IS_ANCESTOR, chosen.commit, base.commit):
            chosen = base
    unrelated = (base for base in bases if not is_true(directory, *_IS_ANCESTOR, base.commit, chosen.commit))
    other = next(unrelated, None)
    return replace(chosen, other=other.label) if other else chosen


def _is_shallow(directory: Path) -> bool:
    return ask_git(directory, "rev-parse", "--is-shallow-repository").said == "true"


def _make_error(directory: Path, answer: GitAnswer) -> GateError:
    refusal = make_git_error(directory, answer, "rev-parse")
    if "work tree" in answer.complaint or "bare repository" in answer.complaint:
        return UsageError(f"{directory.absolute()} is in a repository without a working tree", _FIX)
    return UsageError(refusal.what, _FIX) if "not a git repository" in answer.complaint else refusal


def describe_resolved_commit(directory: Path, commit: str) -> str:
    """By its short id and its subject."""
    answer = ask_git(directory, "show", "--no-patch", "--format=%s", commit)
    return f"{commit[:SHORT_CHARS]} {answer.said}".rstrip() if answer.is_good else commit


def find_repository(directory: Path) -> str:
    """Find ``owner/name`` of ``origin`` on GitHub; empty where it is elsewhere."""
    remote = ask_git(directory, "config", "--get", "remote.origin.url")
    return name_repository(remote.said) if remote.is_good else ""


def name_repository(url: str) -> str:
    """``owner/name``; empty for an address that is not on GitHub."""
    match = _GITHUB.fullmatch(url)
    return match[1] if match else ""
