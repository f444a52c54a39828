"""What was accepted of the commit under test: read from the branch of acceptances in this clone, no token.

Whoever can push to that branch can accept, so the clone's ``origin`` must be the repository itself. A
file that cannot be used is told and does not count. It is all read before any measured code runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from gate.action.base import LIMIT_S, find_head_sha, list_parents, load_head, load_top
from gate.errors import FileError, UsageError
from gate.git import ask_git, read_git
from gate.github.errors import find_text
from gate.github.job import is_sha
from gate.records import Acceptance
from gate.store.acceptances import (
    BRANCH,
    DIRECTORY,
    MAX_COMMIT_BYTES,
    decode_commit_file,
    name_commit_file,
    render_commit_file,
)

REF = f"refs/remotes/origin/{BRANCH}"
_MERGE_PARENTS = 2
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
    commits = _list_group(top, base, head) if is_sha(base) else _list_own(top, head)
    if not commits:
        text = f"No acceptance counts: what is checked out is neither {head[:12]} nor a merge of it."
        return AcceptedFiles(warnings=(text,))
    if not _is_own(top, environ):
        return AcceptedFiles(
            warnings=("No acceptance counts: `origin` of this clone is another repository.",)
        )
    found = [_read_one(top, commit, place, is_grouped=is_sha(base)) for commit in commits]
    warnings = [warning for one in found for warning in one.warnings]
    if is_sha(base) and (text := _warn_old_git(top)):
        warnings.append(text)
    return AcceptedFiles(
        files=tuple(file for one in found for file in one.files),
        notes=tuple(note for one in found for note in one.notes),
        warnings=tuple(warnings),
    )


def _describe_none(top: Path) -> str:
    text = f"Nothing is accepted of this commit: this clone has no branch {BRANCH}"
    if ask_git(top, "rev-parse", "--is-shallow-repository").said == "false":
        return f"{text}."
    return f"{text}, and would not show it without `fetch-depth: 0` of actions/checkout."


def _list_own(top: Path, head: str) -> tuple[str, ...]:
    """List the pull request's head, where it is what is checked out, or what the merge there adds."""
    here = load_head(top)
    parents = list_parents(top)
    is_merge = len(parents) == _MERGE_PARENTS and parents[1] == head
    return (head,) if here == head or is_merge else ()


def _list_group(top: Path, base: str, head: str) -> tuple[str, ...]:
    """List what each commit of a merge group adds; one of its own where that cannot be told."""
    here = load_head(top)
    if here != head:
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


def _read_one(top: Path, commit: str, place: Path, *, is_grouped: bool) -> AcceptedFiles:
    """Read what was accepted of one commit; in a group one without a usable file accepts nothing."""
    name = name_commit_file(commit)
    accepted: Sequence[Acceptance] | None = None
    note, warning = f"Nothing is accepted of commit {commit[:12]}.", ""
    if ask_git(top, "cat-file", "-e", f"{REF}:{name}").is_good:
        try:
            accepted = decode_commit_file(_read_blob(top, name), name, commit).acceptances
            note = _describe(commit, accepted)
        except UsageError as error:
            text = f"What was accepted of commit {commit[:12]} does not count: {error.what}. {error.fix}"
            note, warning = "", text
    files: tuple[str, ...] = ()
    if accepted is not None or is_grouped:
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render_commit_file(commit, accepted or ()), encoding="utf-8")
        files = (str(path),)
    return AcceptedFiles(files=files, notes=(note,) if note else (), warnings=(warning,) if warning else ())


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
