"""Names of commits, resolved in the repository that measured code lies in."""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gate.errors import GateError, MachineError, UsageError
from gate.git import GitAnswer, ask_git, describe_refusal, is_true

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
    """What is measured is its own base: it is part of ``main``, and nothing is uncommitted."""

    def __init__(self, head: str, main: str) -> None:
        super().__init__(
            f"{head} is part of {main}, and nothing is uncommitted",
            "To compare with an earlier commit, name it: compile-gate ab HEAD~1.",
        )
        self.main = main


@dataclass(frozen=True, kw_only=True, slots=True)
class Revision:
    """A commit and the name it was asked for by. ``is_merge_base`` where head left ``name`` there."""

    name: str
    commit: str
    is_merge_base: bool = False
    other: str = ""  # of a main branch: another one, which has neither more of head's history nor less

    @property
    def label(self) -> str:
        """Name it for a reader: ``main (1a2b3c4)``."""
        if self.name == self.commit:
            return f"commit {self.commit[:SHORT_CHARS]}"
        name = f"merge-base with {self.name}" if self.is_merge_base else self.name
        return f"{name} ({self.commit[:SHORT_CHARS]})"


def find_top(directory: Path) -> Path:
    """Find the top of the checkout that ``directory`` lies in.

    Raises:
        UsageError: It lies in none, or git does not trust it.
        MachineError: git cannot be run.
    """
    answer = ask_git(directory, "rev-parse", "--show-toplevel")
    if not answer.is_good:
        raise _describe_refusal(directory, answer)
    return Path(answer.said)


def resolve_ref(directory: Path, ref: str) -> Revision:
    """Resolve a branch, tag or commit; a branch that only the remote ``origin`` has is found there.

    Raises:
        UsageError: No repository, or no such ref.
        MachineError: git cannot be run.
    """
    find_top(directory)
    if revision := find_ref(directory, ref):
        return revision
    fix = _advise_fetching(directory, ref)
    raise UsageError(f"there is no branch, tag or commit {ref!r} in {directory.absolute()}", fix)


def find_ref(directory: Path, ref: str) -> Revision | None:
    """Find a branch, tag or commit, here or on ``origin``; None where there is no such thing.

    Raises:
        MachineError: git cannot be run, or does not answer in time.
    """
    # HEAD~1 that is missing here is not the remote's HEAD~1.
    names = (ref,) if ref.startswith(("HEAD", "@")) else (ref, f"origin/{ref}")
    found = ((name, _find_commit(directory, name)) for name in names)
    return next((Revision(name=name, commit=commit) for name, commit in found if commit), None)


def _find_commit(directory: Path, name: str) -> str:
    """Find the commit of exactly this name; empty where there is no such thing."""
    answer = ask_git(directory, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if answer.status == -1:
        raise describe_refusal(directory, answer, "rev-parse")
    return answer.said if answer.is_good else ""


def advise_missing(directory: Path, otherwise: str) -> str:
    """Advise on a commit that is not here: a shallow clone may lack it; else ``otherwise``.

    Raises:
        MachineError: git cannot be run.
    """
    if _is_shallow(directory):
        return f"This clone is shallow: `git fetch --unshallow`, or {_WHOLE_CLONE}."
    return otherwise


def _advise_fetching(directory: Path, ref: str) -> str:
    """Advise on a name that is not here: a clone in CI often has the one branch that it is about."""
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
    """Resolve a branch, tag or commit that ``head`` was made from, or that it is.

    Raises:
        UsageError: As :func:`resolve_ref`; or ``head`` was not made from it, as far as this clone knows.
        MachineError: git cannot be run, or does not answer in time.
    """
    found, tip = resolve_ref(directory, ref), resolve_ref(directory, head)
    if is_true(directory, *_IS_ANCESTOR, found.commit, tip.commit):
        return found
    fix = advise_missing(directory, f"Name a commit that `git log {head}` lists: a release, for example.")
    raise UsageError(f"{head} was not made from {found.label}", fix)


def find_tag(directory: Path, commit: str, ref: str = "") -> str:
    """Find a tag of a commit: ``ref`` where it is one, else the first by name; empty where it has none."""
    answer = ask_git(directory, "tag", "--points-at", commit)
    tags = [tag for tag in answer.said.splitlines() if tag.isprintable()] if answer.is_good else []
    return ref if ref in tags else next(iter(tags), "")


def resolve_base(directory: Path, ref: str, head: str = "HEAD") -> Revision:
    """Resolve where ``head`` left ``ref``: their merge-base.

    Raises:
        UsageError: No repository, no such ref, no common history, or none in this shallow clone.
        MachineError: git cannot be run.
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
    """Resolve where ``head`` left the branch that changes are merged into.

    On that branch itself it is ``head``, where what is measured is ``changed`` beyond that commit.

    Raises:
        UsageError: As :func:`resolve_base`; or no such branch is found, or head has not left it.
        MachineError: git cannot be run.
    """
    find_top(directory)
    if head == "HEAD" and not _find_commit(directory, head):
        raise UsageError("this repository has no commit yet", "Commit what is there: it is the base.")
    tip = resolve_ref(directory, head)
    main_branches = _list_main_branches(directory)
    if not main_branches:
        raise UsageError(
            "cannot find out which branch is your main branch",
            "Name it: `check --base BRANCH`, or `ab BRANCH`.",
        )
    own = [_list_bases(directory, names, head) for names in main_branches]
    bases = [_choose_nearest(directory, bases) for bases in own if bases]
    if not bases:
        return resolve_base(directory, main_branches[0][0], head)  # says what is wrong
    # A remote that has all of head already, as one that merged it, says where head left only if all have.
    base = _choose_nearest(directory, [base for base in bases if base.commit != tip.commit] or bases)
    if base.commit == tip.commit and not changed:
        raise NothingDiffersError(head, base.name)
    return base


def _list_main_branches(directory: Path) -> list[list[str]]:
    """List the full names of what may be the main branch, by remote; local ones where no remote has any."""
    branch = ask_git(directory, "symbolic-ref", "--quiet", "HEAD").said
    own = ask_git(directory, "config", "--get", f"branch.{branch.removeprefix('refs/heads/')}.remote").said
    places = [f"refs/remotes/{remote}" for remote in dict.fromkeys((*_REMOTES, own)) if remote]
    remote = [_find_names(directory, [f"{place}/{name}" for name in _MAIN_BRANCHES]) for place in places]
    local = _find_names(directory, [f"refs/heads/{name}" for name in _MAIN_BRANCHES])
    # What is checked out is no base of itself, unless nothing else is there.
    local = [name for name in local if name != branch] or local
    return [names for names in remote if names] or [[name] for name in local]


def _find_names(directory: Path, names: list[str]) -> list[str]:
    """Find which of these are commits, by the branches that they stand for: ``origin/HEAD`` is another's."""
    known = [name for name in names if _find_commit(directory, name)]
    full = [ask_git(directory, "rev-parse", "--symbolic-full-name", name).said or name for name in known]
    return list(dict.fromkeys(full))


def _list_bases(directory: Path, names: Iterable[str], head: str) -> list[Revision]:
    """List where head left these; one without history in common says nothing, unless the clone lacks it."""
    bases = []
    for name in names:
        try:
            bases.append(resolve_base(directory, name, head))
        except UsageError:
            if _is_shallow(directory):
                raise
    return bases


def _choose_nearest(directory: Path, bases: Sequence[Revision]) -> Revision:
    """Choose the commit that has the others behind it; of those that cannot be compared the first."""
    chosen = bases[0]
    for base in bases[1:]:
        if base.commit != chosen.commit and is_true(directory, *_IS_ANCESTOR, chosen.commit, base.commit):
            chosen = base
    others = (base for base in bases if not is_true(directory, *_IS_ANCESTOR, base.commit, chosen.commit))
    other = next(others, None)
    return replace(chosen, other=other.label) if other else chosen


def _is_shallow(directory: Path) -> bool:
    return ask_git(directory, "rev-parse", "--is-shallow-repository").said == "true"


def _describe_refusal(directory: Path, answer: GitAnswer) -> GateError:
    refusal = describe_refusal(directory, answer, "rev-parse")
    if "work tree" in answer.complaint or "bare repository" in answer.complaint:
        return UsageError(f"{directory.absolute()} is in a repository without a working tree", _FIX)
    return UsageError(refusal.what, _FIX) if "not a git repository" in answer.complaint else refusal


def describe_resolved_commit(directory: Path, commit: str) -> str:
    """Describe a commit by its short id and its subject."""
    answer = ask_git(directory, "show", "--no-patch", "--format=%s", commit)
    return f"{commit[:SHORT_CHARS]} {answer.said}".rstrip() if answer.is_good else commit


def find_repository(directory: Path) -> str:
    """Find the name ``owner/name`` of ``origin``'s repository on GitHub; empty where it is elsewhere."""
    remote = ask_git(directory, "config", "--get", "remote.origin.url")
    return name_repository(remote.said) if remote.is_good else ""


def name_repository(url: str) -> str:
    """The name ``owner/name`` of a repository on GitHub; empty where the address is another."""
    found = _GITHUB.fullmatch(url)
    return found[1] if found else ""
