"""Checkouts that the tool makes of other commits, with their submodules.

They are registered with the user's repository, so they are taken off its list at the end, and those
of runs that were killed by the next run on that host. Nobody else's worktree is ever touched: ours lie
directly in a scratch directory of this host, and only those of owners that are no more count as left behind.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from gate.errors import MachineError
from gate.git import ask_git
from gate.lab.host.ownership import is_abandoned, is_scratch_name, remove_leftovers
from gate.lab.workers.process import defer_interrupts

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
    answer = ask_git(
        top,
        *("worktree", "add", "--detach", "--force", str(path), commit),
        limit_s=_CHECKOUT_LIMIT_S,
    )
    if not answer.is_good:
        raise MachineError(
            f"git cannot check {commit[:10]} out: {answer.complaint}",
            "Free some space if the disk is full; else check the repository: `git fsck`.",
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
