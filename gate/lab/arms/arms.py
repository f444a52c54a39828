"""What is under test: a directory that measured code is imported from, and an interpreter."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from gate.errors import UsageError
from gate.git import find_checkout
from gate.installation import MODELS, choose_models
from gate.lab.arms.changes import CODE, READ_BY_CODE, hash_changes
from gate.lab.arms.checkouts import run_git
from gate.lab.arms.interpreter import ForeignInterpreter, prepare_interpreter
from gate.lab.arms.provenance import load_provenance
from gate.lab.arms.submodules import fill_submodules
from gate.lab.arms.worktrees import open_worktree, remove_leftover_worktrees
from gate.lab.host.scratch import open_scratch
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.protocol import Checkouts
from gate.records.run import BASE_ARM, CANDIDATE_ARM, Arm, Provenance
from gate.revisions import (
    SHORT_CHARS,
    NothingDiffersError,
    Revision,
    find_ref,
    get_top,
    resolve_base,
    resolve_default_base,
    resolve_ref,
)
from gate.store.rules import BaseTree

_WORKING_TREE = "working tree"

# One side's code: a commit to be checked out, or a directory that is there; None: the working tree.
_Code = Revision | Path | None
_MAX_NAME = 255  # bytes of a file's name, and so of a ref's, on every file system


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmOptions:
    """Refs and paths as a user gives them; empty means not given.

    Head is the working tree by default. Base is head's code where the interpreters differ, else the commit at
    which head left the default branch; on that branch the last commit, if there are changes since.
    """

    directory: Path  # of gate.yml in the working tree: what measured code is imported from
    base: str = ""
    head: str = ""
    base_python: str = ""
    head_python: str = ""
    from_merge_base: bool = False  # base is where head left the ref, not the ref itself
    base_name: str = ""  # what a reader knows the base's commit by, where it is not ``base``
    base_tree: BaseTree | None = None  # where the base is checked out already, if it is that commit


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmSource:
    arm: Arm
    label: str  # "main (1a2b3c4)", "torch 2.11.0 (/opt/new/bin/python)": for a reader
    provenance: Provenance
    notes: tuple[Fact, ...] = ()  # what a reader must know
    commit: str = ""  # that was checked out for it; empty for a directory


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmSources:
    base: ArmSource
    head: ArmSource


def make_working_tree_arm(directory: Path) -> Arm:
    """Make the arm of the working tree.

    Raises:
        UsageError: There is no such directory.
    """
    if not directory.is_dir():
        raise UsageError(
            f"{directory} is not a directory", "Give the directory that the models are imported from."
        )
    return Arm(name=CANDIDATE_ARM, python=sys.executable, directory=str(directory.resolve()))


def make_checkouts(sources: ArmSources) -> Checkouts | None:
    base, head = sources.base, sources.head
    if not (base.commit and base.arm.checkout) or base.arm.python != head.arm.python:
        return None
    return Checkouts(head=head.arm.checkout or base.arm.origin, base=base.arm.checkout)


@contextmanager
def open_arms(options: ArmOptions) -> Iterator[ArmSources]:
    """Make both arms ready, and remove what was made for them at the end.

    Raises:
        UsageError: A ref, directory or interpreter cannot be used; the fix is named.
        MachineError: git is missing or cannot check out, or a disk is full.
    """
    base, head = resolve_arms(options)
    with open_scratch() as scratch:
        interpreters = _prepare_interpreters(options, scratch)
        with (
            _open_code(BASE_ARM, base, options.directory, scratch, options.base_tree) as opened_base,
            _open_code(CANDIDATE_ARM, head, options.directory, scratch) as opened_head,
        ):
            same = base == head
            yield ArmSources(
                base=_use_interpreter(opened_base, interpreters.get(BASE_ARM), same_code=same),
                head=_use_interpreter(opened_head, interpreters.get(CANDIDATE_ARM), same_code=same),
            )


@contextmanager
def open_arm(
    name: str, directory: Path, ref: str, interpreter: ForeignInterpreter | None
) -> Iterator[ArmSource]:
    """Make an arm of a commit, or of the working tree where ``ref`` is empty; raises as :func:`open_arms`."""
    code = _parse_code(directory, ref) if ref else None
    with open_scratch() as scratch, _open_code(name, code, directory, scratch) as opened:
        yield _use_interpreter(opened, interpreter, same_code=not ref)


class CodeState(NamedTuple):
    """A commit, and the hash of what differs from it; empty where that is unknown."""

    commit: str
    changes: str = ""
    is_tree: bool = False  # the working tree, with the new files that code may read


def read_code_states(directory: Path, options: ArmOptions | None) -> list[CodeState]:
    """Head's and, with ``options``, base's; raises as :func:`resolve_arms`."""
    base, head = resolve_arms(options) if options else (None, None)
    return [_read_code_state(code, directory) for code in ((head, base) if options else (head,))]


def _read_code_state(code: _Code, working_tree: Path) -> CodeState:
    if isinstance(code, Revision):
        return CodeState(code.commit)
    path, suffixes = (code, CODE) if code else (working_tree, READ_BY_CODE)
    return CodeState(run_git(path, "rev-parse", "HEAD"), hash_changes(path, suffixes), is_tree=code is None)


def resolve_arms(options: ArmOptions) -> tuple[_Code, _Code]:
    """Base and head; nothing is checked out. Raises UsageError as :func:`open_arms`."""
    head = _parse_code(options.directory, options.head) if options.head else None
    tip = head.commit if isinstance(head, Revision) else "HEAD"
    if not options.base:
        if _has_two_interpreters(options):
            return head, head
        changed = _is_changed(options, head)
        return resolve_default_base(options.directory, tip, changed=changed), head
    base = _parse_code(options.directory, options.base)
    if isinstance(base, Revision) and options.from_merge_base:
        revision = resolve_base(options.directory, options.base, tip)
        if revision.commit == resolve_ref(options.directory, tip).commit and not _is_changed(options, head):
            raise NothingDiffersError(tip, revision.label)
        return revision, head
    if isinstance(base, Revision) and options.base_name:
        return replace(base, name=options.base_name), head
    return base, head


def _has_two_interpreters(options: ArmOptions) -> bool:
    pythons = (options.base_python, options.head_python)
    return len({Path(python or sys.executable).absolute() for python in pythons}) > 1


def _is_changed(options: ArmOptions, head: _Code) -> bool:
    return head is None and load_provenance(options.directory).dirty


def _parse_code(directory: Path, spec: str) -> Revision | Path:
    """What is both a ref and a directory is a ref, as it is for git; ``./name`` is a directory."""
    path = Path(spec).expanduser()
    if len(path.name) > _MAX_NAME:
        raise UsageError(
            f"{spec} is too long for a git ref or a directory", "Name what is to be compared with."
        )
    if not spec.startswith((".", "/", "~")):
        if revision := find_ref(directory, spec):
            return revision
        if not path.is_dir():
            return resolve_ref(directory, spec)  # raises what is wrong
    if not path.is_dir():
        raise UsageError(f"{spec} is not a directory", "Name a directory that exists, or a git ref.")
    return path.resolve()


def _prepare_interpreters(options: ArmOptions, scratch: Path) -> dict[str, ForeignInterpreter]:
    if not (options.base_python or options.head_python):
        return {}
    pythons = {BASE_ARM: options.base_python, CANDIDATE_ARM: options.head_python}
    named_first = sorted(pythons, key=lambda name: not pythons[name])  # they are what may be wrong
    return {
        name: prepare_interpreter(pythons[name] or sys.executable, f"--{name}-python", scratch)
        for name in named_first
    }


def _open_code(
    name: str, code: _Code, directory: Path, scratch: Path, opened: BaseTree | None = None
) -> AbstractContextManager[ArmSource]:
    if isinstance(code, Revision):
        tree = opened.tree if opened and opened.sha == code.commit else None
        return _check_out(name, code, directory, nullcontext(tree) if tree else scratch / name)
    provenance = load_provenance(code or directory)
    label = str(code or _WORKING_TREE)
    if provenance.commit:
        dirty = ", uncommitted changes" if provenance.dirty else ""
        label = f"{label} ({provenance.commit[:SHORT_CHARS]}{dirty})"
    source = ArmSource(
        arm=_place_arm(name, code, directory)
        if code
        else replace(make_working_tree_arm(directory), name=name),
        label=label,
        provenance=provenance,
        notes=(Fact(code=Code.UNCOMMITTED),) if provenance.dirty and not code else (),
    )
    return nullcontext(source)


@contextmanager
def _check_out(
    name: str, revision: Revision, directory: Path, where: Path | AbstractContextManager[Path]
) -> Iterator[ArmSource]:
    top = get_top(directory)
    remove_leftover_worktrees(top)
    inside = directory.resolve().relative_to(top)
    with open_worktree(top, revision.commit, where) if isinstance(where, Path) else where as checkout:
        path, notes = checkout / inside, []
        if not path.is_dir():
            # Workers start there all the same: the reference models need nothing of it.
            path.mkdir(parents=True)
            names = name_words(arm=revision.label, place=str(inside))
            notes.append(Fact(code=Code.NO_DIRECTORY, names=names))
        if revision.other:
            notes.append(Fact(code=Code.OTHER_MAIN, names=name_words(other=revision.other)))
        if empty := fill_submodules(top, checkout):
            names = {**name_words(arm=revision.label), "paths": empty}
            notes.append(Fact(code=Code.NO_SUBMODULES, names=names))
        yield ArmSource(
            arm=_place_arm(name, path, directory),
            label=revision.label,
            provenance=load_provenance(checkout),
            notes=tuple(notes),
            commit=revision.commit,
        )


def _place_arm(name: str, path: Path, directory: Path) -> Arm:
    """Where both directories lie in one checkout, they take the place of the checkouts."""
    working_tree = directory.resolve()
    checkout, origin = find_checkout(path) or path, find_checkout(working_tree) or working_tree
    if checkout == origin:
        checkout, origin = path, working_tree
    models = choose_models(directory, path)
    arm = Arm(
        name=name,
        python=sys.executable,
        directory=str(path),
        models="" if models == MODELS else str(models),
    )
    return arm if checkout == origin else replace(arm, checkout=str(checkout), origin=str(origin))


def _use_interpreter(
    source: ArmSource, interpreter: ForeignInterpreter | None, *, same_code: bool
) -> ArmSource:
    if interpreter is None:
        return source
    return replace(
        source,
        arm=replace(source.arm, python=interpreter.python, variables=interpreter.variables),
        label=interpreter.label if same_code else f"{source.label}, {interpreter.label}",
    )
