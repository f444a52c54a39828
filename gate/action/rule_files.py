"""The rules that a commit holds, read as data: written outside the checkout, loaded, and told by their names.

All that is said of such a file goes through :func:`name_files`: a reader knows ``gate.yml`` of a commit, and
not the file of a scratch directory that is gone by then.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gate.action.base import Tree, write_files
from gate.errors import UsageError
from gate.project.arm_cases import Rules
from gate.project.config import check_places, load_config
from gate.project.registry import choose_cases, fold_registries, load_cases
from gate.store.baselines import load_baselines
from gate.store.policy import load_policy


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What of a commit is wanted: its configuration, where in the checkout that lies, and what is below it.

    ``path`` is of the commit's file, and ``own`` of what stands for it in the checkout; all is written below
    ``place``. What is empty of the rest the configuration says.
    """

    tree: Tree
    path: Path
    own: Path
    place: Path
    baselines: str  # of the workflow
    select: str  # of the workflow
    suffix: str = ""  # behind each name in messages


def load_rule_files(wanted: Wanted) -> tuple[Rules, tuple[str, ...]]:
    """Write the rules of a commit outside of the checkout, and load all of them.

    Registries are folded in, baselines are those that were written, and results go where the checkout has
    them. Also returns the commit's files and directories, as git writes them.

    Raises:
        UsageError: One of them cannot be used, or be had from the commit.
    """
    with name_files(wanted.place, wanted.suffix):
        return _load(wanted)


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
    stored = tree.to_git(Path.cwd() / wanted.baselines) if wanted.baselines else ""
    stored = stored or tree.to_git(put_back(loaded.baselines, path))
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
    if not wanted.select:
        choose_cases(config, cases)
    return Rules(config=fold_registries(config), cases=cases), (name, *registry, stored)


@contextmanager
def name_files(place: Path, suffix: str) -> Iterator[None]:
    """Let errors name files below ``place`` as the commit does, with ``suffix`` behind each name."""
    try:
        yield
    except UsageError as error:
        # What the commit does not have was not written: such a name ends where a path usually does.
        known = sorted(map(str, place.rglob("*")), key=len, reverse=True)
        files = "|".join([*map(re.escape, known), rf"{re.escape(str(place))}/[^\s:,;'\"`()]+"])
        named = re.compile(rf"({files})(:\d+)?")

        def write_name(found: re.Match[str]) -> str:
            return f"{posixpath.normpath(os.path.relpath(found[1], place))}{suffix}{found[2] or ''}"

        for one in (error, *error.others):
            one.what, one.fix = (named.sub(write_name, text) for text in (one.what, one.fix))
        raise
