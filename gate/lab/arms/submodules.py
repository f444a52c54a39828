"""Submodules of a commit that is checked out apart: from the objects that the clone has, and no network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from gate.git import ask_git

_GITLINK = "160000"  # the mode of a submodule among git's entries
_LIMIT_S = 600.0  # of one submodule with many files


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
    """List the path and the commit of each submodule."""
    answer = ask_git(checkout, "ls-files", "--stage", "-z", limit_s=_LIMIT_S)
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
    return ask_git(place, "checkout", "--quiet", "--detach", commit, limit_s=_LIMIT_S).is_good
