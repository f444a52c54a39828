"""The rules that a commit holds, read as data: from git's objects, written elsewhere, and loaded."""

import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from gate.action.base import LIMIT_S
from gate.errors import UsageError
from gate.git import MissingContentError, read_git
from gate.project.arm_cases import Rules
from gate.project.config import check_places, load_config
from gate.project.registry import choose_cases, fold_registries, load_cases
from gate.store.baselines import load_baselines
from gate.store.policy import load_policy

_REGULAR = frozenset((b"100644", b"100755"))
_KINDS = {b"120000": "a symbolic link", b"160000": "a submodule"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """A commit of the repository whose checkout lies at ``top``."""

    top: Path
    sha: str

    def to_git(self, path: Path) -> str:
        """Write an absolute path as git does, from the top of the checkout.

        Raises:
            UsageError: It lies outside.
        """
        absolute = Path(os.path.normpath(path))
        if not absolute.is_relative_to(self.top):
            raise UsageError(
                f"{path} lies outside the repository: no commit has it",
                "Move it into the repository, or set `baseline-ref: head`.",
            )
        return absolute.relative_to(self.top).as_posix()


def has_path(tree: Tree, name: str) -> bool:
    """Whether the commit has a file or a directory of that name; raises as :func:`write_files`."""
    return bool(_read(tree, "ls-tree", "-z", "--full-tree", tree.sha, "--", name))


def _read(tree: Tree, *arguments: str, given: bytes = b"") -> bytes:
    """Read a commit from git's objects: what git cannot read is no mistake in what the commit holds."""
    try:
        return read_git(tree.top, *arguments, given=given, limit_s=LIMIT_S)
    except UsageError as error:
        raise MissingContentError(tree.sha, error.what) from None


def write_files(tree: Tree, names: Sequence[str], place: Path) -> None:
    """Write the files at or below ``names`` under ``place``; what the commit does not have is left out.

    Raises:
        UsageError: One of them is no regular file, or the clone lacks its content.
    """
    parents = [str(parent) for name in names for parent in PurePosixPath(name).parents if str(parent) != "."]
    _list_entries(tree, ("ls-tree", "-z"), parents)  # a link on the way would hide what lies behind it
    entries = tuple(_list_entries(tree, ("ls-tree", "-r", "-z"), names))
    given = b"".join(object_id + b"\n" for object_id, _ in entries)
    content = _read(tree, "cat-file", "--batch", given=given)
    for (_, path), data in zip(entries, _split_batch(tree, content), strict=True):
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def _list_entries(
    tree: Tree, command: tuple[str, ...], names: Sequence[str]
) -> tuple[tuple[bytes, str], ...]:
    if not names:
        return ()
    listed = _read(tree, *command, "--full-tree", tree.sha, "--", *names)
    return tuple(_parse_entry(tree, entry) for entry in listed.split(b"\0") if entry)


def _parse_entry(tree: Tree, entry: bytes) -> tuple[bytes, str]:
    described, _, name = entry.partition(b"\t")
    mode, kind, object_id = described.split()
    path = os.fsdecode(name)
    if kind != b"tree" and mode not in _REGULAR:
        raise UsageError(
            f"{path} of commit {tree.sha[:12]} is {_KINDS.get(mode, 'no file')}",
            "Put the file itself there: a change is judged by regular files of the base commit only.",
        )
    if ".." in PurePosixPath(path).parts:
        raise UsageError(
            f"{path} of commit {tree.sha[:12]} leads out of it", "Check the repository: `git fsck`."
        )
    return object_id, path


def _split_batch(tree: Tree, content: bytes) -> Iterator[bytes]:
    """Split what ``git cat-file --batch`` wrote: ``ID blob SIZE``, a line end, the content, a line end."""
    position = 0
    while position < len(content):
        end = content.index(b"\n", position)
        header = content[position:end].split()
        if len(header) != 3:  # noqa: PLR2004 - "ID missing"
            raise MissingContentError(tree.sha)
        size = int(header[2])
        yield content[end + 1 : end + 1 + size]
        position = end + 1 + size + 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What of a commit is wanted: its configuration, where in the checkout that lies, and what is below it.

    ``path`` is of the commit's file, and ``own`` of what stands for it in the checkout; all is written below
    ``place``. What the workflow's ``inputs`` leave empty of baselines and selection the configuration says.
    """

    tree: Tree
    path: Path
    own: Path
    place: Path
    inputs: Mapping[str, str] = field(repr=False)
    suffix: str = ""  # behind each name in messages


def load_rule_files(wanted: Wanted) -> tuple[Rules, tuple[str, ...]]:
    """Write the rules of a commit outside of the checkout, and load all of them.

    Registries are folded in, baselines are those that were written, and results go where the checkout has
    them. Also returns the commit's files and directories, as git writes them.

    Raises:
        UsageError: One of them cannot be used, or be had from the commit.
    """
    try:
        return _load(wanted)
    except UsageError as error:
        _name_files(error, wanted.place, wanted.suffix)
        raise


def _load(wanted: Wanted) -> tuple[Rules, tuple[str, ...]]:
    tree, path, place = wanted.tree, wanted.path, wanted.place
    name = tree.to_git(path)
    write_files(tree, (name,), place)
    loaded = load_config(place / name)
    check_places(loaded)

    def put_back(one: Path, config: Path) -> Path:
        """Find what a path of the written configuration would be, had it been read at ``config``."""
        inside = one.is_relative_to((place / name).parent)
        return config.parent / (one.relative_to((place / name).parent) if inside else one)

    registry = tuple(tree.to_git(put_back(one, path)) for one in loaded.registry)
    said = wanted.inputs["baselines"]
    stored = tree.to_git(Path.cwd() / said if said else put_back(loaded.baselines, path))
    write_files(tree, (*registry, stored), place)
    (place / stored).mkdir(parents=True, exist_ok=True)
    config = replace(
        loaded,
        registry=tuple(place / one for one in registry),
        baselines=place / stored,
        out=put_back(loaded.out, wanted.own),
        history=put_back(loaded.history, wanted.own) if loaded.history else None,
    )
    cases = load_cases(config)
    load_policy(config)
    load_baselines(config.baselines)
    if not wanted.inputs["select"]:
        choose_cases(config, cases)
    return Rules(config=fold_registries(config), cases=cases), (name, *registry, stored)


def _name_files(error: UsageError, place: Path, suffix: str) -> None:
    """Let an error name files below ``place`` as the commit does, with ``suffix`` behind each name.

    A reader knows ``gate.yml`` of a commit, and not the file of a scratch directory that is gone by then.
    """
    # What the commit does not have was not written: such a name ends where a path usually does.
    known = sorted(map(str, place.rglob("*")), key=len, reverse=True)
    files = "|".join([*map(re.escape, known), rf"{re.escape(str(place))}/[^\s:,;'\"`()]+"])
    named = re.compile(rf"({files})(:\d+)?")

    def write_name(found: re.Match[str]) -> str:
        return f"{posixpath.normpath(os.path.relpath(found[1], place))}{suffix}{found[2] or ''}"

    for one in (error, *error.others):
        one.what, one.fix = (named.sub(write_name, text) for text in (one.what, one.fix))
