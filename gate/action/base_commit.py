"""Which commit of this clone a change is compared with, and what was accepted of the change itself.

The base branch in GitHub's payload may be outdated. GitHub checks out a trial merge into the base branch of
now, whose first parent is the base. Where something else is checked out, the base is where it left the
clone's base branch, or else the payload's commit.

Whoever can push to the branch of acceptances can accept, so the clone's ``origin`` must be the repository
itself. Whatever asks git may raise MachineError.
"""

import os
import re
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
REF = f"refs/remotes/origin/{BRANCH}"
_MERGE = ("merge-tree", "--write-tree")  # of git 2.38 and later
_ANSWERS = (0, 1)  # without and with conflicts; with any other status git says nothing of the merge
# Accepted commits that a squashed one is compared with, newest first: a queue merges what is recent.
_MAX_SQUASHED = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseCommit:
    """``origin`` is a clause for a reader: how the commit was found."""

    sha: str
    origin: str


def find_head_sha(event: Mapping[str, object]) -> str:
    """A pull request's own head, not its trial merge."""
    return find_text(event, "pull_request.head.sha") or find_text(event, "merge_group.head_sha")


def find_base(event: Mapping[str, object], directory: Path) -> BaseCommit | None:
    """``None`` for a push or a dispatch.

    Raises:
        UsageError: It is not in this clone, or what is checked out is not the event's change.
    """
    if not any(isinstance(find_value(event, name), Mapping) for name in ("pull_request", "merge_group")):
        return None
    top, head = read_top(directory), find_head_sha(event)
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
    return _get_fork_point(top, named, branch)


def read_top(directory: Path) -> Path:
    """Raises UsageError where there is no checkout around, or git does not read it."""
    return Path(os.fsdecode(read_git(directory, "rev-parse", "--show-toplevel").rstrip(b"\n")))


def read_head(top: Path) -> str:
    return read_git(top, "rev-parse", "HEAD").decode().strip()


def list_parents(top: Path, commit: str = "HEAD") -> tuple[str, ...]:
    """In a shallow clone they need not be there."""
    text = read_git(top, "cat-file", "commit", commit, limit_s=LIMIT_S)
    header = text.decode(errors="replace").partition("\n\n")[0]
    return tuple(line.partition(" ")[2] for line in header.splitlines() if line.startswith("parent "))


def _find_merged_into(top: Path, head: str) -> str:
    """Find the base of a trial merge of ``head``; empty where no such merge is checked out."""
    parents = list_parents(top)
    return parents[0] if len(parents) == _MERGE_PARENTS and parents[1] == head else ""


def check_commit(top: Path, sha: str) -> None:
    """Raises UsageError where the clone lacks the commit."""
    if not is_true(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{sha}^{{commit}}"):
        raise UsageError(f"the base commit {sha} is not in this clone", _FETCH_ALL)


def _get_fork_point(top: Path, named: str, branch: str) -> BaseCommit:
    """Get where HEAD, which is no trial merge, left the clone's base ``branch``.

    The commit that the event ``named`` may be older than what the change has merged. It counts where the
    branch has all of HEAD, and so no longer shows that.
    """
    here = read_head(top)
    name = f"origin/{branch}"
    tip = ask_git(
        top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"refs/remotes/{name}^{{commit}}"
    )
    if branch and tip.is_good:
        left = _get_merge_base(top, tip.said, f"the base branch {name}")
        if left != here:
            return BaseCommit(sha=left, origin=f"where this change left the base branch {name}")
    check_commit(top, named)
    what = f"the base commit {named[:12]}"
    origin = f"where this change left {what} that the event names"
    return BaseCommit(sha=_get_merge_base(top, named, what), origin=origin)


def _get_merge_base(top: Path, commit: str, what: str) -> str:
    _check_whole(top, f"where this change left {what}")
    if not is_true(top, "merge-base", commit, "HEAD", limit_s=LIMIT_S):
        raise UsageError(f"HEAD and {what} have no commit in common", _CHECK_OUT)
    return read_git(top, "merge-base", commit, "HEAD", limit_s=LIMIT_S).decode().strip()


def _check_contains(top: Path, commit: str, what: str) -> None:
    """Else something else would be measured."""
    head = read_head(top)
    if head == commit:
        return
    if not is_true(top, "merge-base", "--is-ancestor", commit, "HEAD", limit_s=LIMIT_S):
        _check_whole(top, f"whether HEAD has {what} {commit[:12]}")
        raise UsageError(f"HEAD, {head[:12]}, does not have {what} {commit[:12]}", _CHECK_OUT)


def _check_whole(top: Path, what: str) -> None:
    """With a part of the history git's answer may be another one."""
    if read_git(top, "rev-parse", "--is-shallow-repository").strip() != b"false":
        raise UsageError(f"this clone is shallow: it does not show {what}", _FETCH_ALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptedFiles:
    """``files`` are for ``--accepted``; ``warnings`` describe acceptances that do not count."""

    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def collect_accepted(event: Mapping[str, object], environ: Mapping[str, str], to: Path) -> AcceptedFiles:
    """Write below ``to`` what was accepted of what is checked out.

    A merge group has the acceptances of its pull requests: the second parents of its merges, and what was
    squashed into its commits.
    """
    head = find_head_sha(event)
    if not is_sha(head):
        return AcceptedFiles()
    top = read_top(Path.cwd())
    if not ask_git(top, "rev-parse", "--verify", "--quiet", f"{REF}^{{commit}}").is_good:
        return AcceptedFiles(notes=(_describe_none(top),))
    base = find_text(event, "merge_group.base_sha")
    if is_sha(base):
        commits = _list_group(top, base, head)
    else:  # the pull request's head, where it is what is checked out, or what the merge there adds
        commits = (head,) if read_head(top) == head or _find_merged_into(top, head) else ()
    if not commits:
        text = f"No acceptance counts: what is checked out is neither {head[:12]} nor a merge of it."
        return AcceptedFiles(warnings=(text,))
    if not _is_own_repository(top, environ):
        return AcceptedFiles(
            warnings=("No acceptance counts: `origin` of this clone is another repository.",)
        )
    results = [_write_accepted(top, commit, to, is_grouped=is_sha(base)) for commit in commits]
    if is_sha(base):
        results.append(("", "", _warn_old_git(top)))
    files, notes, warnings = (tuple(filter(None, column)) for column in zip(*results, strict=True))
    return AcceptedFiles(files=files, notes=notes, warnings=warnings)


def _describe_none(top: Path) -> str:
    text = f"Nothing is accepted of this commit: this clone has no branch {BRANCH}"
    if ask_git(top, "rev-parse", "--is-shallow-repository").said == "false":
        return f"{text}."
    return f"{text}, and would not show it without `fetch-depth: 0` of actions/checkout."


def _list_group(top: Path, base: str, head: str) -> tuple[str, ...]:
    """List what each commit of a merge group adds; the commit itself where that is not known."""
    if read_head(top) != head:
        return ()
    listed = read_git(top, "rev-list", "--first-parent", f"{base}..{head}", limit_s=LIMIT_S)
    return tuple(_get_added_commit(top, commit) for commit in listed.decode().split())


def _get_added_commit(top: Path, commit: str) -> str:
    parents = list_parents(top, commit)
    if len(parents) == _MERGE_PARENTS:
        return parents[1]
    squashed = (head for head in _list_accepted(top) if _is_squashed(top, head, commit, parents[0]))
    return next(squashed, commit) if parents else commit


def _list_accepted(top: Path) -> tuple[str, ...]:
    """List the commits with acceptances, the newest acceptance first."""
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
    """For a git that cannot merge without a checkout, and for a commit that the clone lacks."""
    fork = ask_git(top, "merge-base", parent, accepted, limit_s=LIMIT_S)
    if not fork.is_good:
        return False
    theirs, ours = (
        ask_git(top, "diff-tree", "-r", "-z", "--no-renames", "--full-index", *pair, limit_s=LIMIT_S)
        for pair in ((fork.said, accepted), (parent, commit))
    )
    return theirs.is_good and bool(theirs.output) and theirs == ours


def _warn_old_git(top: Path) -> str:
    """Empty with a newer git."""
    if ask_git(top, *_MERGE, "HEAD", "HEAD", limit_s=LIMIT_S).status in _ANSWERS:
        return ""
    version = ask_git(top, "version").said
    return (
        f"{version} is older than 2.38: of what a queue squashes, an acceptance counts only where nothing"
        " else touched the same files. Install a newer git on this runner."
    )


def _is_own_repository(top: Path, environ: Mapping[str, str]) -> bool:
    """A fork's branch accepts nothing here."""
    url = ask_git(top, "config", "--get", "remote.origin.url").said.removesuffix(".git").lower()
    server = urlsplit(environ.get("GITHUB_SERVER_URL", "").lower())
    name = re.escape(environ.get("GITHUB_REPOSITORY", "").lower())
    # https://github.com/owner/name, or by a key git@github.com:owner/name; either with a user or without
    by_url = rf"{server.scheme}://([^/]*@)?{re.escape(server.netloc + server.path)}/{name}"
    by_key = rf"([^/]*@)?{re.escape(server.hostname or '')}:{name}"
    return bool(name) and re.fullmatch(f"{by_url}|{by_key}", url) is not None


def _write_accepted(top: Path, commit: str, directory: Path, *, is_grouped: bool) -> tuple[str, str, str]:
    """Return the file for a commit, a note and a warning, "" for none.

    In a group a commit without a usable file accepts nothing.
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
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_commit_file(commit, accepted or ()), encoding="utf-8")
    return str(path), note, warning


def _read_blob(top: Path, name: str) -> bytes:
    """Raises FileError where it is too large."""
    size = read_git(top, "cat-file", "-s", f"{REF}:{name}")
    if int(size) > MAX_COMMIT_BYTES:
        fix = f"Remove it from the branch {BRANCH}, and comment again."
        raise FileError(name, "", f"has {int(size):,} bytes, more than any file of acceptances", fix)
    return read_git(top, "cat-file", "blob", f"{REF}:{name}")


def _describe(commit: str, accepted: Sequence[Acceptance]) -> str:
    worse = [entry.author for entry in accepted if entry.metric]
    lacking = [entry.author for entry in accepted if not entry.metric]
    what = [f"{len(worse)} of what regressed, by {', '.join(dict.fromkeys(worse))}"] if worse else []
    what += [f"the lack of baselines, by {', '.join(dict.fromkeys(lacking))}"] if lacking else []
    return f"Accepted of commit {commit[:12]}: {'; '.join(what) or 'nothing'}."
