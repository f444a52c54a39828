"""Where a run comes from: commit, what was changed since, time, author, link."""

import hashlib
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gate.files.disk import read_written_ns
from gate.git import GitAnswer, ask_git, read_git
from gate.records import Provenance
from gate.records.protocol import BUILD_SCRIPTS, WorkingTree
from gate.version import __version__

_STATUS_LIMIT_S = 120.0  # a large tree on a cold disk
_CHANGED = ("diff", "--binary", "--no-ext-diff", "--no-textconv", "--submodule=diff", "HEAD")
_NEW_FILES = ("ls-files", "--others", "--exclude-standard", "-z")
# Results are new files as well, and change as a run goes on.
_CODE = (b".py", b".c", b".cc", b".cpp", b".cu", b".cuh", b".h", b".hpp", b".hip", b".pyx", b".rs")


def load_provenance(directory: Path, environ: Mapping[str, str] = os.environ) -> Provenance:
    """Describe the checkout at ``directory``, now. Outside git, commit and author may be empty.

    ``dirty`` speaks of tracked files only: outputs and new baselines do not change what is measured.

    Raises:
        UsageError: git knows the commit and cannot tell what was changed since.
        MachineError: It did not tell in time: a change must not be taken for none.
    """
    commit = run_git(directory, "rev-parse", "HEAD")
    tracked = ("status", "--porcelain", "--untracked-files=no")
    status = read_git(directory, *tracked, limit_s=_STATUS_LIMIT_S) if commit else b""
    return Provenance(
        commit=commit,
        dirty=bool(status),
        created=read_time(),
        author=environ.get("GITHUB_ACTOR", "") or run_git(directory, "config", "user.name"),
        run_url=make_run_url(environ),
        gate_version=__version__,
    )


def hash_changes(directory: Path) -> str:
    """Hash what differs from the commit of ``directory``'s checkout, new files of code included.

    Empty outside of git, and where git does not tell: nobody knows then.
    """
    top = directory / run_git(directory, "rev-parse", "--show-cdup")  # new files are told from there on
    changed = ask_git(top, *_CHANGED, limit_s=_STATUS_LIMIT_S)
    others = ask_git(top, *_NEW_FILES, limit_s=_STATUS_LIMIT_S)
    if not (changed.is_good and others.is_good):
        return ""
    told = hashlib.sha256(changed.output)
    for name in others.output.split(b"\0"):
        if name.endswith(_CODE):
            told.update(name + b"\0" + _read_new(top, os.fsdecode(name)))
    return told.hexdigest()[:16]


def find_tree(directory: Path) -> WorkingTree | None:
    """Find the checkout at ``directory`` and when its newest Python file was written; outside of git none."""
    top = Path(run_git(directory, "rev-parse", "--show-toplevel"))
    if not top.is_absolute():
        return None
    listed = ask_git(
        top, "ls-files", "-z", "--cached", "--others", "--exclude-standard", limit_s=_STATUS_LIMIT_S
    )
    if not listed.is_good:
        return None
    names = (name for name in listed.output.split(b"\0") if name.endswith(b".py"))
    written = [read_written_ns(top / os.fsdecode(name)) for name in names]
    return WorkingTree(top=str(top), newest_ns=max(written, default=0))


def _read_new(directory: Path, name: str) -> bytes:
    try:
        return (directory / name).read_bytes()
    except OSError:  # gone since, or not ours to read: its name counts
        return b""


def run_git(directory: Path, *arguments: str) -> str:
    """Run git in ``directory`` and return its output; empty where git, or a repository, is missing."""
    answer = ask_git(directory, *arguments)
    # Provenance is for people and files in UTF-8: a byte that is no text becomes a question mark.
    return answer.said.encode(errors="replace").decode() if answer.is_good else ""


def make_run_url(environ: Mapping[str, str]) -> str:
    """Make the link to this run of GitHub Actions; empty elsewhere."""
    server, repository = environ.get("GITHUB_SERVER_URL", ""), environ.get("GITHUB_REPOSITORY", "")
    run_id = environ.get("GITHUB_RUN_ID", "")
    if not (server and repository and run_id):
        return ""
    url = f"{server}/{repository}/actions/runs/{run_id}"
    attempt = environ.get("GITHUB_RUN_ATTEMPT", "1")
    return url if attempt == "1" else f"{url}/attempts/{attempt}"


def read_time() -> str:
    """Read the time, as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_DIFF = ("diff", "--name-status", "--no-renames", "--no-ext-diff", "--no-textconv", "-z")

# Each worker is told of them. A change of so many files is no small one: pairs are what it gets.
MAX_CHANGED = 2000

# Python that was changed or added shows where it is imported. Without a file that is gone, an import may find
# another one.
_SHOWN_BY_IMPORTS = frozenset({"A", "M"})
# Written for people, or for GitHub.
_TEXTS = frozenset({".md", ".rst"})
_COMPILED = "__pycache__"  # made of the files beside it
_OF_GITHUB = ".github"


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """What differs from a base, as paths relative to the checkout's top."""

    python: tuple[str, ...] = ()  # changed or new: imports show who uses it
    other: tuple[str, ...] = ()  # what any case may read unseen


def read_changes(top: Path, commit: str, ours: Collection[Path]) -> Changes | None:
    """Read what differs from ``commit`` in the checkout at ``top``, but for what nobody reads.

    Those are texts, what only GitHub reads, and what lies in the directories of the gate itself, ``ours``.
    New files that git ignores are not looked at: the base would not have them.

    Returns:
        The changes; ``None`` where git does not tell, or of more than MAX_CHANGED files.
    """
    changed = ask_git(top, *_DIFF, commit, limit_s=_STATUS_LIMIT_S)
    added = ask_git(top, *_NEW_FILES, limit_s=_STATUS_LIMIT_S)
    if not (changed.is_good and added.is_good):
        return None
    fields, new = _split(changed), _split(added)
    states = [*zip(fields[1::2], fields[::2], strict=True), *((name, "A") for name in new)]
    if len(states) > MAX_CHANGED:
        return None
    own = [str(place.resolve()) for place in ours]
    python = tuple(name for name, state in states if _is_shown(name) and state in _SHOWN_BY_IMPORTS)
    left = (name for name, _ in states if name not in python)
    return Changes(python=python, other=tuple(name for name in left if not _is_unread(top / name, top, own)))


def _split(answer: GitAnswer) -> list[str]:
    """The fields of an answer; workers and files are told of them in UTF-8, which a name need not be."""
    return answer.output.decode(errors="replace").split("\0")[:-1]


def _is_shown(name: str) -> bool:
    return name.endswith(".py") and Path(name).name not in BUILD_SCRIPTS


def _is_unread(place: Path, top: Path, own: Collection[str]) -> bool:
    within = place.relative_to(top)
    if within.suffix in _TEXTS or within.parts[0] == _OF_GITHUB or _COMPILED in within.parts:
        return True
    return any(place.is_relative_to(one) for one in own)
