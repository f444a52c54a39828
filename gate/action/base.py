"""Which commit of this clone a change is held against, and what was accepted of the change itself.

GitHub's payload names the base branch as it was when the pull request was opened, or at some later
moment; it is not kept up to date, and a change of the base branch or a re-run does not renew it. What
GitHub checks out is a trial merge of the pull request into the base branch of now. Its first parent is
therefore the base. Where something else is checked out, the base is where that left the base branch as the
clone has it; the payload's commit is looked at only where the clone has none.

Acceptances are on a branch of their own. Whoever can push to it can accept, so the clone's ``origin`` must
be the repository itself. A file that cannot be used is told and does not count. It is all read before any
measured code runs, without a token.

Whatever asks git may raise MachineError: git cannot be run, or does not answer in time.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from gate.errors import FileError, UsageError
from gate.git import ask_git, is_true, read_git
from gate.github.job import find_text, find_value
from gate.records.bounds import is_sha
from gate.records.cases import Acceptance
from gate.store.commit_files import (
    BRANCH,
    DIRECTORY,
    MAX_COMMIT_BYTES,
    decode_commit_file,
    name_commit_file,
    render_commit_file,
)

LIMIT_S = 120.0  # a large repository on a cold disk
_MERGE_PARENTS = 2


_FETCH_ALL = "Give actions/checkout `fetch-depth: 0`."
_CHECK_OUT = (
    "Let actions/checkout take what the event names: without `ref:`, on `pull_request` or `merge_group`."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseCommit:
    """A commit, and how it was found: a clause for a reader."""

    sha: str
    origin: str


def find_head_sha(event: Mapping[str, object]) -> str:
    """Find the commit under test: a pull request's own head, not its trial merge; empty otherwise."""
    return find_text(event, "pull_request.head.sha") or find_text(event, "merge_group.head_sha")


def find_base(event: Mapping[str, object], directory: Path) -> BaseCommit | None:
    """Find the commit that the checked-out change is held against; ``None`` for a push or a dispatch.

    Raises:
        UsageError: It is not in this clone, or what is checked out is not the event's change.
    """
    if not any(isinstance(find_value(event, name), Mapping) for name in ("pull_request", "merge_group")):
        return None
    top, head = load_top(directory), find_head_sha(event)
    if is_sha(base := find_text(event, "merge_group.base_sha")):
        _check_contains(top, head, "the merge group's commit")
        check_commit(top, base)
        _check_contains(top, base, "the merge group's base commit")
        return BaseCommit(sha=base, origin="what the merge queue puts this group on")
    if base := _find_merged_into(top, head):
        check_commit(top, base)
        return BaseCommit(sha=base, origin="what GitHub merged this change into, to try it")
    named, branch = find_text(event, "pull_request.base.sha"), find_text(event, "pull_request.base.ref")
    if not (is_sha(named) and is_sha(head)):
        raise UsageError("the event's pull request names no base and head commit", _CHECK_OUT)
    _check_contains(top, head, "the pull request's commit")
    return _find_left(top, named, branch)


def load_top(directory: Path) -> Path:
    """Load the top of the checkout that ``directory`` lies in.

    Raises:
        UsageError: It lies in none, or git does not read it; the reason is git's own.
    """
    return Path(os.fsdecode(read_git(directory, "rev-parse", "--show-toplevel").rstrip(b"\n")))


def load_head(top: Path) -> str:
    """Load the commit that is checked out."""
    return read_git(top, "rev-parse", "HEAD").decode().strip()


def list_parents(top: Path, commit: str = "HEAD") -> tuple[str, ...]:
    """List a commit's parents as it names them itself: in a shallow clone they need not be there."""
    text = read_git(top, "cat-file", "commit", commit, limit_s=LIMIT_S)
    header = text.decode(errors="replace").partition("\n\n")[0]
    return tuple(line.partition(" ")[2] for line in header.splitlines() if line.startswith("parent "))


def _find_merged_into(top: Path, head: str) -> str:
    """Find what ``head`` was merged into, where such a merge is checked out, as GitHub's trial merge."""
    parents = list_parents(top)
    return parents[0] if len(parents) == _MERGE_PARENTS and parents[1] == head else ""


def check_commit(top: Path, sha: str) -> None:
    """Check that the clone has a commit.

    Raises:
        UsageError: It does not.
    """
    if not is_true(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{sha}^{{commit}}"):
        raise UsageError(f"the base commit {sha} is not in this clone", _FETCH_ALL)


def _find_left(top: Path, named: str, branch: str) -> BaseCommit:
    """Find where what is checked out, which is no trial merge, left the base.

    That is the base ``branch`` of the clone, since the commit that the event ``named`` may be older than
    what the change has merged of it. Once the branch has all that is checked out, it no longer shows that.
    """
    here = load_head(top)
    name = f"origin/{branch}"
    tip = ask_git(
        top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"refs/remotes/{name}^{{commit}}"
    )
    if branch and tip.is_good:
        found = _find_common(top, tip.said, f"the base branch {name}")
        if found != here:
            return BaseCommit(sha=found, origin=f"where this change left the base branch {name}")
    check_commit(top, named)
    what = f"the base commit {named[:12]}"
    origin = f"where this change left {what} that the event names"
    return BaseCommit(sha=_find_common(top, named, what), origin=origin)


def _find_common(top: Path, other: str, what: str) -> str:
    _check_whole(top, f"where this change left {what}")
    if not is_true(top, "merge-base", other, "HEAD", limit_s=LIMIT_S):
        raise UsageError(f"HEAD and {what} have no commit in common", _CHECK_OUT)
    return read_git(top, "merge-base", other, "HEAD", limit_s=LIMIT_S).decode().splitlines()[0]


def _check_contains(top: Path, commit: str, what: str) -> None:
    """Check that what is checked out has a commit: else something else would be measured."""
    found = load_head(top)
    if found == commit:
        return
    if not is_true(top, "merge-base", "--is-ancestor", commit, "HEAD", limit_s=LIMIT_S):
        _check_whole(top, f"whether HEAD has {what} {commit[:12]}")
        raise UsageError(f"HEAD, {found[:12]}, does not have {what} {commit[:12]}", _CHECK_OUT)


def _check_whole(top: Path, what: str) -> None:
    """Check that history is there: with a part of it git's answer may be another one."""
    if read_git(top, "rev-parse", "--is-shallow-repository").strip() != b"false":
        raise UsageError(f"this clone is shallow: it does not show {what}", _FETCH_ALL)


REF = f"refs/remotes/origin/{BRANCH}"
_MERGE = ("merge-tree", "--write-tree")  # of git 2.38 and later
_ANSWERS = (0, 1)  # without and with conflicts; with any other status git says nothing of the merge
# Accepted commits that a squashed one is compared with, newest first: a queue merges what is recent.
_MAX_SQUASHED = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptedFiles:
    """What counts: the files for ``--accepted``.

    ``notes`` say what was found, ``warnings`` what was found and does not count.
    """

    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def collect_accepted(event: Mapping[str, object], environ: Mapping[str, str], place: Path) -> AcceptedFiles:
    """Write what was accepted of what is checked out below ``place``, and say which there are.

    A pull request's commit has its own. A merge group has those of the pull requests in it: the second
    parents of its merges, and what was squashed into one of its commits and is in this clone.
    """
    head = find_head_sha(event)
    if not is_sha(head):
        return AcceptedFiles()
    top = load_top(Path.cwd())
    if not ask_git(top, "rev-parse", "--verify", "--quiet", f"{REF}^{{commit}}").is_good:
        return AcceptedFiles(notes=(_describe_none(top),))
    base = find_text(event, "merge_group.base_sha")
    if is_sha(base):
        commits = _list_group(top, base, head)
    else:  # the pull request's head, where it is what is checked out, or what the merge there adds
        commits = (head,) if load_head(top) == head or _find_merged_into(top, head) else ()
    if not commits:
        text = f"No acceptance counts: what is checked out is neither {head[:12]} nor a merge of it."
        return AcceptedFiles(warnings=(text,))
    if not _is_own(top, environ):
        return AcceptedFiles(
            warnings=("No acceptance counts: `origin` of this clone is another repository.",)
        )
    found = [_read_one(top, commit, place, is_grouped=is_sha(base)) for commit in commits]
    if is_sha(base):
        found.append(("", "", _warn_old_git(top)))
    files, notes, warnings = (tuple(filter(None, column)) for column in zip(*found, strict=True))
    return AcceptedFiles(files=files, notes=notes, warnings=warnings)


def _describe_none(top: Path) -> str:
    text = f"Nothing is accepted of this commit: this clone has no branch {BRANCH}"
    if ask_git(top, "rev-parse", "--is-shallow-repository").said == "false":
        return f"{text}."
    return f"{text}, and would not show it without `fetch-depth: 0` of actions/checkout."


def _list_group(top: Path, base: str, head: str) -> tuple[str, ...]:
    """List what each commit of a merge group adds; one of its own where that cannot be told."""
    if load_head(top) != head:
        return ()
    listed = read_git(top, "rev-list", "--first-parent", f"{base}..{head}", limit_s=LIMIT_S)
    return tuple(_find_added(top, commit) for commit in listed.decode().split())


def _find_added(top: Path, commit: str) -> str:
    parents = list_parents(top, commit)
    if len(parents) == _MERGE_PARENTS:
        return parents[1]
    squashed = (one for one in _list_accepted(top) if _is_squashed(top, one, commit, parents[0]))
    return next(squashed, commit) if parents else commit


def _list_accepted(top: Path) -> tuple[str, ...]:
    """List the commits of which something was accepted last, the newest first."""
    command = ("log", f"--max-count={_MAX_SQUASHED}", "--format=", "--name-only", REF, "--", DIRECTORY)
    names = read_git(top, *command, limit_s=LIMIT_S).decode(errors="replace").splitlines()
    commits = (PurePosixPath(name).stem for name in names)
    return tuple(dict.fromkeys(commit for commit in commits if is_sha(commit)))


def _is_squashed(top: Path, accepted: str, commit: str, parent: str) -> bool:
    """Whether merging the accepted commit into ``parent`` gives just the files of ``commit``."""
    merged = ask_git(top, *_MERGE, parent, accepted, limit_s=LIMIT_S)
    if merged.status not in _ANSWERS:
        return _has_same_changes(top, accepted, commit, parent)
    tree = ask_git(top, "rev-parse", f"{commit}^{{tree}}")
    before = ask_git(top, "rev-parse", f"{parent}^{{tree}}")
    return merged.is_good and tree.is_good and merged.said == tree.said != before.said


def _has_same_changes(top: Path, accepted: str, commit: str, parent: str) -> bool:
    """Whether both change the same files from and to the same; where a third touched one, they do not.

    For a git that cannot merge without a checkout, and for a commit that the clone lacks: that has none.
    """
    left = ask_git(top, "merge-base", parent, accepted, limit_s=LIMIT_S)
    sides = [
        ask_git(top, "diff-tree", "-r", "-z", "--no-renames", "--full-index", *side, limit_s=LIMIT_S)
        for side in ((left.said, accepted), (parent, commit))
        if left.is_good
    ]
    return bool(sides) and all(one.is_good and one.output for one in sides) and sides[0] == sides[1]


def _warn_old_git(top: Path) -> str:
    """Say that a group's squashed commits may be accepted without being found so; empty with a newer git."""
    if ask_git(top, *_MERGE, "HEAD", "HEAD", limit_s=LIMIT_S).status in _ANSWERS:
        return ""
    version = ask_git(top, "version").said
    return (
        f"{version} is older than 2.38: of what a queue squashes, an acceptance counts only where nothing"
        " else touched the same files. Install a newer git on this runner."
    )


def _is_own(top: Path, environ: Mapping[str, str]) -> bool:
    """Whether ``origin`` is the repository of this workflow: a fork's branch accepts nothing here."""
    url = ask_git(top, "config", "--get", "remote.origin.url").said.removesuffix(".git").lower()
    server, name = environ.get("GITHUB_SERVER_URL", "").lower(), environ.get("GITHUB_REPOSITORY", "").lower()
    # https://github.com/owner/name, or by a key git@github.com:owner/name; either with a user or without
    scheme, mark, rest = url.rpartition("://")
    place = rest.rpartition("@")[2] if mark else url.rpartition("@")[2].replace(":", "/", 1)
    is_here = f"{scheme}{mark}{place}" == f"{server}/{name}"
    return bool(name) and (is_here or (not mark and place == f"{urlsplit(server).hostname}/{name}"))


def _read_one(top: Path, commit: str, place: Path, *, is_grouped: bool) -> tuple[str, str, str]:
    """Read what was accepted of one commit into a file; return that, a note and a warning, or "" for each.

    In a group one without a usable file accepts nothing.
    """
    name = name_commit_file(commit)
    accepted: Sequence[Acceptance] | None = None
    note, warning = f"Nothing is accepted of commit {commit[:12]}.", ""
    try:
        if read_git(top, "ls-tree", REF, "--", name):
            accepted = decode_commit_file(_read_blob(top, name), name, commit).acceptances
            note = _describe(commit, accepted)
    except UsageError as error:
        text = f"What was accepted of commit {commit[:12]} does not count: {error.what}. {error.fix}"
        note, warning = "", text
    if accepted is None and not is_grouped:
        return "", note, warning
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_commit_file(commit, accepted or ()), encoding="utf-8")
    return str(path), note, warning


def _read_blob(top: Path, name: str) -> bytes:
    """Read a file of the branch, unless it is larger than any that counts."""
    size = read_git(top, "cat-file", "-s", f"{REF}:{name}")
    if int(size) > MAX_COMMIT_BYTES:
        fix = f"Remove it from the branch {BRANCH}, and comment again."
        raise FileError(name, "", f"has {int(size):,} bytes, more than any file of acceptances", fix)
    return read_git(top, "cat-file", "blob", f"{REF}:{name}")


def _describe(commit: str, accepted: Sequence[Acceptance]) -> str:
    worse = [one.author for one in accepted if one.metric]
    lacking = [one.author for one in accepted if not one.metric]
    what = [f"{len(worse)} of what regressed, by {', '.join(dict.fromkeys(worse))}"] if worse else []
    what += [f"the lack of baselines, by {', '.join(dict.fromkeys(lacking))}"] if lacking else []
    return f"Accepted of commit {commit[:12]}: {'; '.join(what) or 'nothing'}."
