"""The rules that judge a change: the base commit's, read before any of the change runs.

The change's own rules are read too: they must be valid for the next change, and they locate its models.
"""

import os
import posixpath
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from gate.errors import FileError, UsageError
from gate.git import DIFF, MissingContentError, read_git
from gate.project.arm_cases import Followed, Rules, follow_moves, mark_removed
from gate.project.config import (
    DEFAULT_FILE,
    Config,
    check_places,
    describe_base_commit,
    load_config,
    make_default_config,
)
from gate.project.registry import fold_registries, load_cases
from gate.project.selection import choose_cases
from gate.records.cases import Case
from gate.store.baselines import load_baselines
from gate.store.policy import load_policy

LIMIT_S = 120.0  # a large repository on a cold disk


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseTree:
    """``tree`` is a checkout of the base commit, ``top`` that of the change.

    ``empty`` are submodules of it that this clone does not have.
    """

    sha: str
    tree: Path
    top: Path
    empty: tuple[str, ...] = ()

    def find(self, path: Path) -> Path:
        """Return the base's path of what lies at ``path`` in the checkout of the change.

        Raises:
            UsageError: It is outside of the checkout, or in a submodule that this clone lacks.
        """
        absolute = Path(os.path.normpath(path))
        if not absolute.is_relative_to(self.top):
            what = f"{path} lies outside the repository: no commit has it"
            raise UsageError(what, "Move it into the repository, or be judged by your own rules.")
        name = absolute.relative_to(self.top)
        if any(name.is_relative_to(submodule) for submodule in self.empty):
            what = f"this clone lacks the submodule of {name}, so nothing is known of the base commit's"
            raise UsageError(what, "Give actions/checkout `submodules: true`.")
        return self.tree / name


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedRules:
    """Options, as paths from the current directory; empty where not given."""

    config: str = ""
    baselines: str = ""
    select: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseRules:
    """``sha`` is empty where the change is judged by its own rules: the base has none of use."""

    config: Config
    cases: tuple[Case, ...]
    source: Path = Path(DEFAULT_FILE)  # the configuration's place in the checkout of the change
    sha: str = ""
    changed: tuple[str, ...] = ()  # files of the rules that the change touches
    moved: tuple[str, ...] = ()  # models that are measured where the change has them now
    removed: tuple[str, ...] = ()  # cases that the change no longer has as the base defines them
    mended: str = ""  # what is wrong with the base's, which the change mends
    tree: BaseTree | None = field(default=None, repr=False)

    @property
    def is_first(self) -> bool:
        return bool(self.changed) and not (self.sha or self.mended)


def load_rules(base: BaseTree, asked: AskedRules) -> BaseRules:
    """Load the rules of the base commit; where it has none, or the change mends them, the change's own.

    Raises:
        UsageError: They cannot be used, or the change's own could not be once it is merged.
    """
    candidates = _list_candidates(base, asked.config)
    own_path = next((candidate for candidate in candidates if candidate.is_file()), None)
    in_base = (candidate for candidate in candidates if os.path.lexists(base.find(candidate)))
    path = next(in_base, None) or (_find_moved(base, own_path) if own_path else None)
    if path is None:
        return _take_own(base, asked, own_path)
    here = own_path if own_path and not path.exists() else path
    try:
        rules = _load_base(base, asked, path)
    except MissingContentError:
        raise
    except UsageError as error:
        mended = _take_mended(error, base, asked, own_path)
        return replace(_take_own(base, asked, own_path), mended=mended, changed=())
    change = _load_own(base, asked, own_path)
    # A configuration that the change puts nearer is another than the base's.
    followed = follow_moves(rules, change) if own_path in {None, here} else Followed(config=rules.config)
    return BaseRules(
        config=_place(followed.config, base, path, here),
        cases=mark_removed(load_cases(followed.config), followed.removed),
        source=path,
        sha=base.sha,
        changed=_list_changed(base, rules.config, path),
        moved=followed.moved,
        removed=followed.removed,
        tree=base,
    )


def _take_own(base: BaseTree, asked: AskedRules, own_path: Path | None) -> BaseRules:
    if own_path:
        _load_own(base, asked, own_path)
    config = load_config(asked.config)
    added = (own_path.relative_to(base.top).as_posix(),) if own_path else ()
    source = own_path or Path.cwd() / DEFAULT_FILE
    return BaseRules(config=config, cases=load_cases(config), source=source, changed=added, tree=base)


def _load_base(base: BaseTree, asked: AskedRules, path: Path) -> Rules:
    suffix = describe_base_commit(base.sha)
    stored = base.find(Path.cwd() / asked.baselines) if asked.baselines else None
    try:
        return _load(base.find(path), base.tree, asked, stored)
    except UsageError as error:
        _name_files(error, base.tree, suffix)
        raise


def _load_own(base: BaseTree, asked: AskedRules, own_path: Path | None) -> Rules:
    """Load the change's own rules; without a configuration, those of the defaults.

    Raises:
        UsageError: They cannot be used.
    """
    if own_path is None:
        if asked.config:
            what = f"this change has no {asked.config}, and the base commit does"
            raise UsageError(what, "Put it back, or name where it is now.")
        defaults = make_default_config()
        return Rules(config=defaults, cases=load_cases(defaults))
    stored = Path.cwd() / asked.baselines if asked.baselines else None
    try:
        return _load(own_path, base.top, asked, stored)
    except UsageError as error:
        _name_files(error, base.top, "")
        error.fix += " Merged as it is, this would fail the check of every change."
        raise


def _load(path: Path, root: Path, asked: AskedRules, stored: Path | None) -> Rules:
    _refuse_links(root, path)
    loaded = load_config(path)
    config = replace(loaded, baselines=stored or loaded.baselines)
    check_places(loaded)
    for rule in (*config.registry, config.baselines):
        _refuse_links(root, rule)
    for file in sorted(config.baselines.rglob("*")):
        _refuse_links(root, file)
    cases = load_cases(config)
    load_policy(config)
    load_baselines(config.baselines)
    if not asked.select:
        choose_cases(config, cases)
    return Rules(config=fold_registries(config), cases=cases)


def _refuse_links(root: Path, path: Path) -> None:
    """Check that a path is in the commit itself: a link could lead to a file of the change.

    Raises:
        UsageError: It is outside of the checkout ``root``, or a link, or behind one.
    """
    absolute = Path(os.path.normpath(path))
    if not absolute.is_relative_to(root):
        what = f"{path} lies outside the repository: no commit has it"
        raise UsageError(what, "Move it into the repository, or be judged by your own rules.")
    for part in (*reversed(absolute.parents), absolute):
        if part.is_relative_to(root) and part != root and part.is_symlink():
            fix = "Put the file itself there: a change is judged by regular files of the base commit only."
            raise UsageError(f"{part} is a symbolic link", fix)


def _take_mended(error: UsageError, base: BaseTree, asked: AskedRules, own_path: Path | None) -> str:
    """Describe the error in the base's rules that the change mends.

    Raises:
        UsageError: The base's error, with a fix: the change does not mend it.
    """
    fix = f"{error.fix} A change that mends this is judged by its own rules."
    try:
        if own_path is None:
            raise error
        _load_own(base, asked, own_path)
    except UsageError as left:
        error.fix = fix
        if left.what != error.what.replace(describe_base_commit(base.sha), ""):
            error.others = (*error.others, left)
        raise error from None
    return f"{error.what}. {fix}"


def _place(config: Config, base: BaseTree, path: Path, here: Path) -> Config:
    before, now = base.find(path).parent, here.parent

    def move(path: Path) -> Path:
        return now / path.relative_to(before) if path.is_relative_to(before) else path

    placed = replace(
        config,
        directory=now,
        commit=base.sha,
        source=os.path.relpath(here),
        out=move(config.out),
        history=move(config.history) if config.history else None,
    )
    return replace(placed, origins=dict.fromkeys(config.origins, placed.label))


def _list_candidates(base: BaseTree, config: str) -> list[Path]:
    here = Path.cwd()
    above = [parent / DEFAULT_FILE for parent in (here, *here.parents) if parent.is_relative_to(base.top)]
    return [here / config] if config else above


def _find_moved(base: BaseTree, own_path: Path) -> Path | None:
    """Find the base's configuration where the change moves it: else a change could be judged by its own.

    That is git's rename, or the nearest removed file of such a name above or below.
    """
    words = iter(_diff(base, "--find-renames", "--diff-filter=RD", "--name-status", "-z", base.sha))
    renamed: dict[str, str] = {}
    gone = []
    for status in words:
        if status.startswith("R"):
            before, after = next(words), next(words)
            renamed[after] = before
        elif status:
            gone.append(next(words))
    name = own_path.relative_to(base.top).as_posix()
    if before := renamed.get(name, ""):
        return base.top / before
    alike = [
        path
        for path in (base.top / name for name in (*gone, *renamed.values()))
        if path.name in {own_path.name, DEFAULT_FILE}
        if path.is_relative_to(own_path.parent) or own_path.is_relative_to(path.parent)
    ]
    depth = len(own_path.parts)
    return min(alike, key=lambda path: (abs(len(path.parts) - depth), path), default=None)


def _list_changed(base: BaseTree, config: Config, path: Path) -> tuple[str, ...]:
    registry = load_config(base.find(path)).registry
    rules = (base.find(path), *registry, config.baselines)
    names = (Path(os.path.normpath(rule)).relative_to(base.tree).as_posix() for rule in rules)
    return list_changed(base, tuple(names))


def list_changed(base: BaseTree, names: tuple[str, ...]) -> tuple[str, ...]:
    """List what the change touches of ``names``: not what the base did since the change left it."""
    left = _read(base, "merge-base", base.sha, "HEAD").decode().split()[0]
    listed = _diff(base, "--name-only", "-z", left, "--", *names)
    return tuple(name for name in listed if name)


def _diff(base: BaseTree, *arguments: str) -> list[str]:
    return os.fsdecode(_read(base, *DIFF, *arguments)).split("\0")


def _read(base: BaseTree, *arguments: str) -> bytes:
    """An error of git is no mistake in what the commit holds."""
    try:
        return read_git(base.top, *arguments, limit_s=LIMIT_S)
    except UsageError as error:
        raise MissingContentError(base.sha, error.what) from None


def _name_files(error: UsageError, root: Path, suffix: str) -> None:
    """Readers know ``gate.yml`` of a commit, not a scratch file that is gone by then."""
    # A name of ours ends where a path usually does; the file of an error is known whole.
    files = {part.file.partition(":")[0] for part in (error, *error.others) if isinstance(part, FileError)}
    inside = [re.escape(name) for name in sorted(files) if name.startswith(f"{root}/")]
    named = re.compile("(" + "|".join([*inside, rf"{re.escape(str(root))}/[^\s:,;'\"`()]+"]) + r")(:\d+)?")

    def write_name(match: re.Match[str]) -> str:
        return f"{posixpath.normpath(os.path.relpath(match[1], root))}{suffix}{match[2] or ''}"

    for part in (error, *error.others):
        part.what, part.fix = (named.sub(write_name, text) for text in (part.what, part.fix))
