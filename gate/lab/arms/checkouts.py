"""Checkouts: what is in one and when it was looked at, and those that are made of other commits.

Those that are made are registered with the user's repository, so they are taken off its list at the end, and
those of runs that were killed by the next run on that host. Nobody else's worktree is ever touched: ours lie
directly in a scratch directory of this host, and only those of owners that are no more count as left behind.
"""

import hashlib
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from gate.errors import MachineError
from gate.files.disk import read_written_ns
from gate.git import ALL_SUBMODULES, DIFF, GitAnswer, MissingContentError, ask_git, is_partial, read_git
from gate.lab.arms.outputs import find_outputs
from gate.lab.host.ownership import is_abandoned, is_scratch_name, remove_leftovers
from gate.lab.workers.process import defer_interrupts
from gate.records.protocol import BUILD_SCRIPTS, WorkingTree
from gate.records.run import Provenance
from gate.revisions import find_repository
from gate.version import __version__

_STATUS_LIMIT_S = 120.0  # a large tree on a cold disk
# However many objects a clone has, and whatever a user has set.
_ALIKE = (
    *("--binary", "--full-index", "--no-prefix", "--unified=3", "--inter-hunk-context=0"),
    *("--indent-heuristic", "--diff-algorithm=myers", "--submodule=short"),
)
_CHANGED = (*DIFF, *_ALIKE, "HEAD")
_NEW_FILES = ("ls-files", "--others", "--exclude-standard", "-z")
_TOP = ("rev-parse", "--show-cdup")
_DIGITS = 16  # of a hash
_UNCHANGED = hashlib.sha256().hexdigest()[:_DIGITS]
# Results are new files as well, and change as a run goes on.
CODE = (b".py", b".c", b".cc", b".cpp", b".cu", b".cuh", b".h", b".hpp", b".hip", b".pyx", b".rs")
READ_BY_CODE = (*CODE, b".json", b".yaml", b".yml", b".toml", b".ini", b".cfg")


def load_provenance(directory: Path, environ: Mapping[str, str] = os.environ) -> Provenance:
    """Describe the checkout at ``directory``, now. Outside git, commit and author may be empty.

    ``dirty`` speaks of tracked files only: outputs and new baselines do not change what is measured.

    Raises:
        UsageError: git knows the commit and cannot tell what was changed since.
        MachineError: It did not tell in time: a change must not be taken for none.
    """
    commit = run_git(directory, "rev-parse", "HEAD")
    tracked = ("status", "--porcelain", "--untracked-files=no", ALL_SUBMODULES)
    status = read_git(directory, *tracked, limit_s=_STATUS_LIMIT_S) if commit else b""
    return Provenance(
        commit=commit,
        dirty=bool(status) or bool(commit and _list_hidden(Path(directory, run_git(directory, *_TOP)))),
        created=read_time(),
        author=environ.get("GITHUB_ACTOR", "") or run_git(directory, "config", "user.name"),
        run_url=make_run_url(environ),
        repository=environ.get("GITHUB_REPOSITORY", "") or find_repository(directory),
        branch=environ.get("GITHUB_HEAD_REF", "") or run_git(directory, "branch", "--show-current"),
        gate_version=__version__,
    )


def hash_changes(directory: Path, suffixes: tuple[bytes, ...] = CODE) -> str:
    """Hash what differs from the commit of ``directory``'s checkout and, in each submodule, from its commit.

    New files with ``suffixes`` are included. Empty outside of git, and where git does not answer.
    """
    top = directory / run_git(directory, *_TOP)  # new files are listed from there
    changed = ask_git(top, *_CHANGED, limit_s=_STATUS_LIMIT_S)
    others = ask_git(top, *_NEW_FILES, limit_s=_STATUS_LIMIT_S)
    if not (changed.is_good and others.is_good):
        return ""
    digest = hashlib.sha256(changed.output)
    added = [name for name in others.output.split(b"\0") if name.endswith(suffixes)]
    for name in (*added, *_list_hidden(top)):
        digest.update(name + b"\0" + _read_new(top, os.fsdecode(name)))
    for path, _ in _list_links(top):
        if (top / path / ".git").exists():  # else it is empty, and git would answer for this checkout
            within = hash_changes(top / path, suffixes)
            if not within:
                return ""
            if within != _UNCHANGED:
                digest.update(os.fsencode(path) + b"\0" + within.encode())
    return digest.hexdigest()[:_DIGITS]


def _list_hidden(top: Path) -> list[bytes]:
    """List changed files that git was told to take for unchanged: it shows them nowhere."""
    entries = ask_git(top, "ls-files", "-v", "--stage", "-z", limit_s=_STATUS_LIMIT_S).output.split(b"\0")
    flagged = [entry for entry in entries if entry[:1].islower() or entry[:1] == b"S"]
    known = {name: stage.split()[2] for stage, _, name in (entry.partition(b"\t") for entry in flagged)}
    names = [name for name in known if (top / os.fsdecode(name)).is_file()]  # a sparse checkout has none
    written = b"".join(name + b"\n" for name in names)
    hashes = ask_git(top, "hash-object", "--stdin-paths", given=written).output.split() if names else []
    if len(hashes) != len(names):  # one cannot be read, or has a line break in its name
        return names
    return [name for name, content in zip(names, hashes, strict=True) if known[name] != content]


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


_DIFF = (*DIFF, "--name-status", "-z")

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

    Those are texts, what only GitHub reads, new files that our output goes to, and what lies in the
    directories of the gate itself, ``ours``.
    New files that git ignores are not looked at: the base would not have them.

    Returns:
        The changes; ``None`` where git does not tell, or of more than MAX_CHANGED files.
    """
    changed = ask_git(top, *_DIFF, commit, limit_s=_STATUS_LIMIT_S)
    added = ask_git(top, *_NEW_FILES, limit_s=_STATUS_LIMIT_S)
    if not (changed.is_good and added.is_good):
        return None
    fields, new = _split(changed), _split(added)
    hidden = [name.decode(errors="replace") for name in _list_hidden(top)]
    states = [*zip(fields[1::2], fields[::2], strict=True), *((name, "M") for name in hidden)]
    states += [(name, "A") for name in new]
    if len(states) > MAX_CHANGED:
        return None
    own = [str(place.resolve()) for place in ours]
    python = tuple(name for name, state in states if _is_shown(name) and state in _SHOWN_BY_IMPORTS)
    outputs = find_outputs([top / name for name in new])
    left = (name for name, _ in states if name not in python and top / name not in outputs)
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


_CHECKOUT_LIMIT_S = 1800.0  # the largest repositories, with large files to fetch
_ENTRY = "worktree "  # of `git worktree list --porcelain`


@contextmanager
def open_worktree(top: Path, commit: str, path: Path) -> Iterator[Path]:
    """Check ``commit`` of the repository at ``top`` out into ``path``; it is gone at the end.

    Raises:
        MachineError: git cannot check it out.
    """
    try:
        _add_worktree(top, commit, path)
        yield path
    finally:
        with defer_interrupts():
            remove_worktree(top, path)


def remove_worktree(top: Path, path: Path) -> None:
    """Remove a worktree with all that is in it and take it off the repository's list."""
    # Twice: the first force is for files that came in, the second for a checkout that was cut short.
    ask_git(top, "worktree", "remove", "--force", "--force", str(path), limit_s=_CHECKOUT_LIMIT_S)
    shutil.rmtree(path, ignore_errors=True)  # where git gave up


def remove_leftover_worktrees(top: Path) -> None:
    """Take the worktrees of this host's runs that were killed off the list of the repository at ``top``."""
    for path in list_worktrees(top):
        scratch = path.parent
        is_gone = not scratch.exists()  # another run has removed it, or the machine was restarted
        if is_scratch_name(scratch.name) and (is_gone or is_abandoned(scratch)):
            remove_worktree(top, path)
            remove_leftovers(scratch.parent)


def list_worktrees(top: Path) -> tuple[Path, ...]:
    """List the linked worktrees of the repository at ``top``, those without a directory included."""
    listed = ask_git(top, "worktree", "list", "--porcelain").said.splitlines()
    paths = [Path(line.removeprefix(_ENTRY)) for line in listed if line.startswith(_ENTRY)]
    return tuple(paths[1:])  # the first is the main one


def _add_worktree(top: Path, commit: str, path: Path) -> None:
    # A sparse clone hands its patterns on: what it leaves out may be the rules.
    whole = ("-c", "core.sparseCheckout=false")
    answer = ask_git(
        top, *whole, "worktree", "add", "--detach", "--force", str(path), commit, limit_s=_CHECKOUT_LIMIT_S
    )
    if not answer.is_good and is_partial(top):
        raise MissingContentError(commit, answer.complaint)
    if not answer.is_good:
        raise MachineError(
            f"git cannot check {commit[:10]} out: {answer.complaint}",
            "Free some space if the disk is full. If .git is read-only, clone it to where you may write, or"
            " measure without a base: --no-base. Else check the repository: `git fsck`.",
        )


_GITLINK = "160000"  # the mode of a submodule among git's entries
_SUBMODULE_LIMIT_S = 600.0  # of one submodule with many files


def fill_submodules(top: Path, checkout: Path) -> tuple[str, ...]:
    """Put the submodules of ``checkout`` in place, which is of a commit of the repository at ``top``.

    Returns those that stay empty, as paths below ``checkout``: the clone lacks their commit.
    """
    return tuple(_fill(_list_stores(top), top, checkout, PurePosixPath()))


def _fill(stores: Sequence[Path], origin: Path, checkout: Path, below: PurePosixPath) -> Iterator[str]:
    """Fill the submodules of a checkout: ``stores`` may hold repositories of them, ``origin`` checkouts."""
    names = _list_names(checkout)
    for path, commit in _list_links(checkout):
        kept = [store / "modules" / names[path] for store in stores if path in names]
        places = [*kept, *_list_stores(origin / path)]
        store = next((place for place in places if _has_commit(place, commit)), None)
        place = checkout / path
        if store is None or not _check_out(store, commit, place):
            yield str(below / path)
        else:
            yield from _fill([store], origin / path, place, below / path)


def _list_links(checkout: Path) -> Iterator[tuple[str, str]]:
    answer = ask_git(checkout, "ls-files", "--stage", "-z", limit_s=_SUBMODULE_LIMIT_S)
    for entry in os.fsdecode(answer.output).split("\0"):
        stage, _, path = entry.partition("\t")
        if stage.startswith(_GITLINK):
            yield path, stage.split()[1]


def _list_names(checkout: Path) -> dict[str, str]:
    """List the name of each submodule by its path; git keeps its repository by that, wherever it moves to."""
    asked = ("config", "--file", ".gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$")
    entries = (entry.partition("\n") for entry in os.fsdecode(ask_git(checkout, *asked).output).split("\0"))
    names = {path: key.removeprefix("submodule.").removesuffix(".path") for key, _, path in entries if path}
    # A name is of the commit: none leads out of where git keeps repositories.
    return {path: name for path, name in names.items() if not {"", "..", "/"} & {*PurePosixPath(name).parts}}


def _list_stores(checkout: Path) -> list[Path]:
    """List the directories in which git keeps what it knows of a checkout: a linked one has two."""
    if not (checkout / ".git").exists():
        return []
    told = [ask_git(checkout, "rev-parse", one) for one in ("--git-dir", "--git-common-dir")]
    return [checkout / answer.said for answer in told if answer.is_good]


def _has_commit(store: Path, commit: str) -> bool:
    if not (store / "objects").is_dir():
        return False
    # It says itself where its checkout lies, which may be gone by now: any directory does.
    place = (f"--git-dir={store}", f"--work-tree={store}")
    return ask_git(store, *place, "cat-file", "-e", f"{commit}^{{commit}}").is_good


def _check_out(store: Path, commit: str, place: Path) -> bool:
    """Check a commit of ``store`` out into a repository of its own that borrows the objects."""
    place.mkdir(parents=True, exist_ok=True)
    own = place / ".git"
    if not ask_git(place, "init", "--quiet", "--template=").is_good:
        return False
    (own / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (own / "objects" / "info" / "alternates").write_text(f"{store.resolve() / 'objects'}\n", encoding="utf-8")
    if (store / "shallow").is_file():  # without it git looks for parents that were never fetched
        shutil.copyfile(store / "shallow", own / "shallow")
    return ask_git(place, "checkout", "--quiet", "--detach", commit, limit_s=_SUBMODULE_LIMIT_S).is_good
