"""The submodules of a checkout that is made of a commit."""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from gate.git import ask_git

_GITLINK = "160000"  # the mode of a submodule among git's entries
_SUBMODULE_LIMIT_S = 600.0  # of one submodule with many files


def fill_submodules(top: Path, checkout: Path) -> tuple[str, ...]:
    """Fill the submodules of ``checkout``, which is of a commit of the repository at ``top``.

    Returns those that stay empty, as paths below ``checkout``: the clone lacks their commit.
    """
    return tuple(_fill(_list_stores(top), top, checkout, PurePosixPath()))


def _fill(stores: Sequence[Path], origin: Path, checkout: Path, below: PurePosixPath) -> Iterator[str]:
    """Repositories may lie in one of ``stores``, checkouts below ``origin``."""
    names = _list_names(checkout)
    for path, commit in list_links(checkout):
        kept = [store / "modules" / names[path] for store in stores if path in names]
        candidates = [*kept, *_list_stores(origin / path)]
        store = next((candidate for candidate in candidates if _has_commit(candidate, commit)), None)
        if store is None or not _check_out(store, commit, checkout / path):
            yield str(below / path)
        else:
            yield from _fill([store], origin / path, checkout / path, below / path)


def list_links(checkout: Path) -> Iterator[tuple[str, str]]:
    answer = ask_git(checkout, "ls-files", "--stage", "-z", limit_s=_SUBMODULE_LIMIT_S)
    for entry in os.fsdecode(answer.output).split("\0"):
        stage, _, path = entry.partition("\t")
        if stage.startswith(_GITLINK):
            yield path, stage.split()[1]


def _list_names(checkout: Path) -> dict[str, str]:
    asked = ("config", "--file", ".gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$")
    entries = (entry.partition("\n") for entry in os.fsdecode(ask_git(checkout, *asked).output).split("\0"))
    names = {path: key.removeprefix("submodule.").removesuffix(".path") for key, _, path in entries if path}
    # A name is of the commit: none leads out of where git keeps repositories.
    return {path: name for path, name in names.items() if not {"", "..", "/"} & {*PurePosixPath(name).parts}}


def _list_stores(checkout: Path) -> list[Path]:
    if not (checkout / ".git").exists():
        return []
    answers = [ask_git(checkout, "rev-parse", option) for option in ("--git-dir", "--git-common-dir")]
    return [checkout / answer.said for answer in answers if answer.is_good]


def _has_commit(store: Path, commit: str) -> bool:
    if not (store / "objects").is_dir():
        return False
    # Its own setting of a work tree may name a checkout that is gone: any directory does.
    options = (f"--git-dir={store}", f"--work-tree={store}")
    return ask_git(store, *options, "cat-file", "-e", f"{commit}^{{commit}}").is_good


def _check_out(store: Path, commit: str, path: Path) -> bool:
    path.mkdir(parents=True, exist_ok=True)
    repository = path / ".git"
    if not ask_git(path, "init", "--quiet", "--template=").is_good:
        return False
    alternates = repository / "objects" / "info" / "alternates"
    alternates.parent.mkdir(parents=True, exist_ok=True)
    alternates.write_text(f"{store.resolve() / 'objects'}\n", encoding="utf-8")
    if (store / "shallow").is_file():  # without it git looks for parents that were never fetched
        shutil.copyfile(store / "shallow", repository / "shallow")
    return ask_git(path, "checkout", "--quiet", "--detach", commit, limit_s=_SUBMODULE_LIMIT_S).is_good
