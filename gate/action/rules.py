"""By whose rules: those of the base commit for as long as a command runs, and no longer than untouched.

They are read from git's objects and written outside the checkout, so that a pull request cannot move
its own bar and nothing that it holds is in the way. Where measured code is imported from stays the
directory that the configuration would lie in.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from gate.action.approvals import Approvals, collect_approvals
from gate.action.base import BaseCommit, check_commit, find_base, load_top
from gate.action.input_table import JUDGING
from gate.action.step import ActionStep
from gate.action.tree import LIMIT_S, Tree, has_path, write_files
from gate.errors import MachineError
from gate.files.codec import write_atomic
from gate.git import read_git
from gate.project.config import Config, load_config, render_config
from gate.project.config_file import DEFAULT_FILE
from gate.project.time_limits import LIMIT_KEYS
from gate.publish.ci_run import WORKFLOWS


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleSource:
    """What a check is judged by. ``sha`` is empty where that is the working tree."""

    config: str  # for --config; empty means the default
    baselines: str  # for --baselines; empty means what the configuration says
    sha: str = ""
    origin: str = ""  # of ``sha``, a clause for a reader; empty where the workflow names the commit
    directory: str = ""  # for --directory: where measured code is imported from; empty: the configuration's
    changed: tuple[str, ...] = ()  # files of these that the change under test touches
    workflows: tuple[str, ...] = field(default=())  # files below ``WORKFLOWS`` that it touches
    approvals: Approvals = field(default_factory=Approvals)  # of what is judged


@contextmanager
def hold_rules(step: ActionStep) -> Iterator[RuleSource]:
    """Put the rules that the input ``baseline-ref`` asks for in place, and take them away afterwards.

    Raises:
        UsageError, FileError: They cannot be had.
        MachineError: Something wrote to them meanwhile.
    """
    root = Path(step.environ.get("RUNNER_TEMP") or tempfile.gettempdir())
    place = root / f"compile-gate-rules-{secrets.token_hex(4)}"
    base = _choose_commit(step)
    try:
        rules = prepare_rules(step.inputs["config"], step.inputs["baselines"], base, place)
        if step.inputs.mode in JUDGING:
            rules = replace(rules, approvals=collect_approvals(step.event, step.environ, place))
        before = _digest(place)
        yield rules
        if _digest(place) != before:
            raise MachineError(
                f"the rules of the base commit, in {place}, were written to while measuring",
                "Look at what the change runs; measure on a runner that is made anew for each job.",
            )
    finally:
        shutil.rmtree(place, ignore_errors=True)


def load_rules_config(config: str) -> Config:
    """Load the configuration of that name; empty means the default."""
    return load_config(Path(config) if config else None)


def _choose_commit(step: ActionStep) -> BaseCommit | None:
    ref = step.inputs["baseline-ref"]
    if ref == "head":
        return None
    return find_base(step.event, Path.cwd()) if ref == "base" else BaseCommit(sha=ref, origin="")


def prepare_rules(config: str, baselines: str, base: BaseCommit | None, place: Path) -> RuleSource:
    """Write the rules of a commit below ``place``; without one, the working tree's hold.

    Raises:
        UsageError: The commit is not in this clone, or a path of its configuration cannot be had from it.
        FileError: Its configuration cannot be used.
    """
    if base is None:
        return RuleSource(config=config, baselines=baselines)
    top = load_top(Path.cwd())
    check_commit(top, base.sha)
    tree = Tree(top=top, sha=base.sha)
    path = _find_config(tree, config)
    if path is None:
        # The base has no configuration yet: the head's is all there is, and that is said.
        own = tree.to_git(Path.cwd() / (config or DEFAULT_FILE))
        changed = (own,) if (top / own).exists() else ()
        return RuleSource(
            config=config,
            baselines=baselines,
            changed=changed,
            workflows=_list_changed(tree, (WORKFLOWS,)),
        )
    return _extract(tree, path, baselines, place, base.origin)


def _find_config(tree: Tree, config: str) -> Path | None:
    """Find the configuration in the commit: the one that is named, else the nearest from here upwards."""
    if config:
        named = Path.cwd() / config
        return named if has_path(tree, tree.to_git(named)) else None
    here = Path.cwd()
    above = [path for path in (here, *here.parents) if path.is_relative_to(tree.top)]
    found = (path / DEFAULT_FILE for path in above)
    return next((path for path in found if has_path(tree, tree.to_git(path))), None)


def _extract(tree: Tree, path: Path, baselines: str, place: Path, origin: str) -> RuleSource:
    name, files = tree.to_git(path), place / "files"
    write_files(tree, (name,), files)
    loaded = load_config(files / name)
    registry = tuple(_translate(tree, one, path, files / name) for one in loaded.registry)
    stored = tree.to_git(Path.cwd() / baselines) if baselines else ""
    stored = stored or _translate(tree, loaded.baselines, path, files / name)
    write_files(tree, (*registry, stored), files)
    (files / stored).mkdir(parents=True, exist_ok=True)
    kept = replace(
        loaded,
        registry=tuple(files / one for one in registry),
        baselines=files / stored,
        out=_put_back(loaded.out, path, files / name),
        history=_put_back(loaded.history, path, files / name) if loaded.history else None,
        directory=Path(),
        origins={},
    )
    # What nobody set is left to the device and the cases of the change, as it is outside of the action.
    unset = [key for key in LIMIT_KEYS if key not in loaded.origins]
    write_atomic(place / DEFAULT_FILE, render_config(kept, without=unset))
    ruling = (name, *registry, stored)
    return RuleSource(
        config=str(place / DEFAULT_FILE),
        baselines=str(files / stored),
        sha=tree.sha,
        origin=origin,
        directory=str(path.parent),
        changed=_list_changed(tree, ruling),
        workflows=_list_changed(tree, (WORKFLOWS,)),
    )


def _translate(tree: Tree, path: Path, config: Path, extracted: Path) -> str:
    """Write a path of the extracted configuration as git would, had it been read where it belongs."""
    return tree.to_git(_put_back(path, config, extracted))


def _put_back(path: Path, config: Path, extracted: Path) -> Path:
    """Find what a path of the extracted configuration would be, had it been read where it belongs."""
    directory = extracted.parent
    return config.parent / (path.relative_to(directory) if path.is_relative_to(directory) else path)


def _list_changed(tree: Tree, names: tuple[str, ...]) -> tuple[str, ...]:
    """List what the change itself touches: not what the base did since the change left it."""
    command = ("diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--name-only", "-z")
    listed = read_git(tree.top, *command, f"{tree.sha}...HEAD", "--", *names, limit_s=LIMIT_S)
    return tuple(name for name in listed.decode(errors="surrogateescape").split("\0") if name)


def _digest(place: Path) -> str:
    """Compute what all files below ``place`` are; a link that was put there counts by its name."""
    digest = hashlib.sha256()
    for path in sorted(place.rglob("*")):
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        digest.update(repr((str(path.relative_to(place)), path.is_symlink(), content)).encode())
    return digest.hexdigest()
