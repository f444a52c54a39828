"""By whose rules: those of the base commit for as long as a command runs, and no longer than untouched.

They are read from git's objects and written outside the checkout, so that a pull request cannot move
its own bar and nothing that it holds is in the way. Where measured code is imported from stays the
directory that the configuration would lie in.
"""

import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from gate.action.base import (
    LIMIT_S,
    AcceptedFiles,
    BaseCommit,
    check_commit,
    collect_accepted,
    find_base,
    find_head_sha,
    load_head,
    load_top,
)
from gate.action.inputs import ActionStep
from gate.action.rule_files import Tree, Wanted, has_path, load_rule_files
from gate.errors import MachineError, UsageError
from gate.files.codec import write_atomic
from gate.git import MissingContentError, find_checkout, read_git
from gate.project.arm_cases import Followed, Rules, follow_moves
from gate.project.config import (
    DEFAULT_FILE,
    LIMIT_KEYS,
    load_config,
    make_default_config,
    name_base,
    render_config,
)
from gate.project.registry import load_cases
from gate.publish.submitted import WORKFLOWS
from gate.store.policy import name_gate


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleSource:
    """What a check is judged by. ``sha`` is empty where that is the working tree."""

    config: str  # for --config; empty means the default
    baselines: str = ""  # for --baselines; empty means what the configuration says
    sha: str = ""
    origin: str = ""  # of ``sha``, a clause for a reader; empty where the workflow names the commit
    directory: str = ""  # for --directory: where measured code is imported from; empty: the configuration's
    changed: tuple[str, ...] = ()  # files of these that the change under test touches
    workflows: tuple[str, ...] = field(default=())  # files below ``WORKFLOWS`` that it touches
    accepted: AcceptedFiles = field(default_factory=AcceptedFiles)  # of what is judged
    moved: tuple[str, ...] = ()  # models that are measured where the change has them now
    removed: tuple[str, ...] = ()  # cases that the change no longer has as the base defines them
    mended: str = ""  # what is wrong with the base's, which the change mends: it is judged by its own
    source: str = ""  # the configuration's own path, where ``config`` is made of it
    gate: str = ""  # which judges, as acceptances name it

    @property
    def is_first(self) -> bool:
        """Whether the change adds the configuration: the base commit has none."""
        return bool(self.changed) and not (self.sha or self.mended)


@contextmanager
def hold_rules(step: ActionStep) -> Iterator[RuleSource]:
    """Put the rules that the input ``baseline-ref`` asks for in place, and take them away afterwards.

    Raises:
        UsageError, FileError: They cannot be had.
        MachineError: Something wrote to them meanwhile.
    """
    _check_agreed(step)
    root = Path(step.environ.get("RUNNER_TEMP") or tempfile.gettempdir())
    place = root / f"compile-gate-rules-{secrets.token_hex(4)}"
    inputs, ref = step.inputs, step.inputs["baseline-ref"]
    base = None if ref == "head" else BaseCommit(sha=ref, origin="")
    if ref == "base":
        base = find_base(step.event, Path.cwd())
    try:
        rules = prepare_rules(inputs, base, place)
        accepted = collect_accepted(step.event, step.environ, place)
        rules = replace(rules, accepted=accepted, gate=_name_gate(rules, step))
        before = _digest(place)
        yield rules
        if _digest(place) != before:
            raise MachineError(
                f"the rules of the base commit, in {place}, were written to while measuring",
                "Look at what the change runs; measure on a new runner for each job.",
            )
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _check_agreed(step: ActionStep) -> None:
    """Refuse what a workflow says of how a change is judged: all its jobs, and the publisher, must agree."""
    for name in ("fail-on", "select") if find_head_sha(step.event) else ():
        if step.inputs[name]:
            what = f"input {name}: of a pull request or a merge group the base's gate.yml says that"
            raise UsageError(what, f"Set `{name.replace('-', '_')}:` there, and remove it from the workflow.")


def _name_gate(rules: RuleSource, step: ActionStep) -> str:
    source = Path(rules.source or load_config(rules.config).source)
    top = find_checkout(source.parent)
    return name_gate(source, top, step.inputs["comment-key"]) if top else ""


def prepare_rules(inputs: Mapping[str, str], base: BaseCommit | None, place: Path) -> RuleSource:
    """Write the rules of a commit below ``place``; without one, the working tree's hold.

    The change's own are loaded too: they must hold for the next change, and say where its models are now.
    Where the base's cannot be used, a change that mends them is judged by its own.

    Raises:
        UsageError: The commit is not in this clone, or a path of its configuration cannot be had from it.
        FileError: Its configuration cannot be used, or the change's own could not be once it is merged.
    """
    config = inputs["config"]
    working = RuleSource(config=config, baselines=inputs["baselines"])
    if base is None:
        return working
    top = load_top(Path.cwd())
    check_commit(top, base.sha)
    tree, head = Tree(top=top, sha=base.sha), Tree(top=top, sha=load_head(top))
    own = _find_config(head, config)
    path = _find_config(tree, config) or (_find_moved(tree, head, own) if own else None)
    change = Wanted(tree=head, path=own, own=own, place=place / "own", inputs=inputs) if own else None
    workflows = _list_changed(tree, (WORKFLOWS,))
    if path is None:
        # The base has no configuration yet: the head's is all there is, and that is said.
        if change:
            _load_own(change, config)
        name = tree.to_git(Path.cwd() / (config or DEFAULT_FILE))
        added = (name,) if (top / name).exists() else ()
        return replace(working, changed=added, workflows=workflows)
    here = own if own and not has_path(head, head.to_git(path)) else path
    suffix = name_base(base.sha)
    files = place / "files"
    wanted = Wanted(tree=tree, path=path, own=here, place=files, inputs=inputs, suffix=suffix)
    try:
        rules, names = load_rule_files(wanted)
    except MissingContentError:
        raise
    except UsageError as error:
        mended = _take_mended(error, change, config, suffix)
        return replace(working, mended=mended, workflows=workflows)
    followed = _follow(rules, _load_own(change, config), wanted, is_same=own in {None, here})
    changed = _list_changed(tree, names)
    return replace(followed, sha=tree.sha, origin=base.origin, changed=changed, workflows=workflows)


def _load_own(change: Wanted | None, config: str) -> Rules:
    """Load the change's own rules as the next one will; without a configuration, those of the defaults.

    Raises:
        UsageError: They cannot be used.
    """
    if change is None:
        if config:
            what = f"input config: this change has no {config}, and the base commit does"
            raise UsageError(what, "Put it back, or name in the workflow where it is now.")
        defaults = make_default_config()
        return Rules(config=defaults, cases=load_cases(defaults))
    try:
        return load_rule_files(change)[0]
    except UsageError as error:
        if not isinstance(error, MissingContentError):
            error.fix += " Merged as it is, this would fail the check of every change."
        raise


def _take_mended(error: UsageError, change: Wanted | None, config: str, suffix: str) -> str:
    """Say what is wrong with the base's rules, which nobody can be judged by, where the change mends it.

    Raises:
        UsageError: The base's, with what to do: the change does not mend them.
    """
    fix = f"{error.fix} A change that mends this is judged by its own rules."
    if change is None:
        error.fix = fix
        raise error
    try:
        _load_own(change, config)
    except UsageError as own:
        error.fix = fix
        if own.what != error.what.replace(suffix, ""):
            error.others = (*error.others, own)
        raise error from None
    return f"{error.what}. {error.fix}"


def _follow(rules: Rules, own: Rules, wanted: Wanted, *, is_same: bool) -> RuleSource:
    """Write the base's rules with each model where the change has it.

    Unless ``is_same``, the change puts a configuration nearer, beside the base's: that says nothing of what
    the base's names.
    """
    config = rules.config
    followed = follow_moves(rules, own) if is_same else Followed(config=config)
    # What nobody set is left to the device and the cases of the change, as it is outside of the action.
    unset = [key for key in LIMIT_KEYS if key not in config.origins]
    written = wanted.place.with_name("config") / wanted.path.name
    kept = replace(followed.config, directory=Path(), origins={})
    write_atomic(written, render_config(kept, without=unset))
    return RuleSource(
        config=str(written),
        baselines=str(config.baselines),
        directory=str(wanted.own.parent),
        source=str(wanted.path),
        moved=followed.moved,
        removed=followed.removed,
    )


def _find_config(tree: Tree, config: str) -> Path | None:
    """Find the configuration in the commit: the one that is named, else the nearest from here upwards."""
    if config:
        named = Path.cwd() / config
        return named if has_path(tree, tree.to_git(named)) else None
    here = Path.cwd()
    above = [path for path in (here, *here.parents) if path.is_relative_to(tree.top)]
    found = (path / DEFAULT_FILE for path in above)
    return next((path for path in found if has_path(tree, tree.to_git(path))), None)


def _find_moved(tree: Tree, head: Tree, own: Path) -> Path | None:
    """Find the base's configuration where the change moves it: else a change could be judged by its own.

    That is the file that git takes for it, or else the one of such a name that is gone above or below it.
    """
    listed = _diff(tree, "--find-renames", "--diff-filter=RD", "--name-status", "-z", tree.sha, head.sha)
    words = iter(listed)
    renamed: dict[str, str] = {}
    gone = []
    for status in words:
        if status.startswith("R"):
            before, after = next(words), next(words)
            renamed[after] = before
        elif status:
            gone.append(next(words))
    name = head.to_git(own)
    if found := renamed.get(name):
        return tree.top / found
    places = [tree.top / one for one in (*gone, *renamed.values())]
    alike = [
        one
        for one in places
        if one.name in {own.name, DEFAULT_FILE}
        if one.is_relative_to(own.parent) or own.is_relative_to(one.parent)
    ]
    return alike[0] if len(alike) == 1 else None


def _list_changed(tree: Tree, names: tuple[str, ...]) -> tuple[str, ...]:
    """List what the change itself touches: not what the base did since the change left it."""
    listed = _diff(tree, "--no-renames", "--name-only", "-z", f"{tree.sha}...HEAD", "--", *names)
    return tuple(name for name in listed if name)


def _diff(tree: Tree, *arguments: str) -> list[str]:
    """List the words of what ``git diff`` finds, without the programs that the repository names for it."""
    command = ("diff", "--no-ext-diff", "--no-textconv")
    return os.fsdecode(read_git(tree.top, *command, *arguments, limit_s=LIMIT_S)).split("\0")


def _digest(place: Path) -> str:
    """Compute what all files below ``place`` are; a link that was put there counts by its name."""
    digest = hashlib.sha256()
    for path in sorted(place.rglob("*")):
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        digest.update(repr((str(path.relative_to(place)), path.is_symlink(), content)).encode())
    return digest.hexdigest()
