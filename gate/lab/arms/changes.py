"""Which files differ between a base and the working tree, and which of them a case may read unseen."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from gate.git import GitAnswer, ask_git
from gate.records.protocol import BUILD_SCRIPTS

_LIMIT_S = 120.0  # a large tree on a cold disk
_DIFF = ("diff", "--name-status", "--no-renames", "--no-ext-diff", "--no-textconv", "-z")
_NEW = ("ls-files", "--others", "--exclude-standard", "-z")

# Each worker is told of them. A change of so many files is no small one: pairs are what it gets.
MAX_CHANGED = 2000

_CODE = ".py"
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

    Those are texts, what only GitHub reads, and what lies in the directories of the gate itself, ``ours``.
    New files that git ignores are not looked at: the base would not have them.

    Returns:
        The changes; ``None`` where git does not tell, or of more than MAX_CHANGED files.
    """
    changed = ask_git(top, *_DIFF, commit, limit_s=_LIMIT_S)
    added = ask_git(top, *_NEW, limit_s=_LIMIT_S)
    if not (changed.is_good and added.is_good):
        return None
    fields, new = _split(changed), _split(added)
    states = [*zip(fields[1::2], fields[::2], strict=True), *((name, "A") for name in new)]
    if len(states) > MAX_CHANGED:
        return None
    own = [str(place.resolve()) for place in ours]
    python = tuple(name for name, state in states if _is_shown(name) and state in _SHOWN_BY_IMPORTS)
    left = (name for name, _ in states if name not in python)
    return Changes(python=python, other=tuple(name for name in left if not _is_unread(top / name, top, own)))


def _split(answer: GitAnswer) -> list[str]:
    """The fields of an answer; workers and files are told of them in UTF-8, which a name need not be."""
    return answer.output.decode(errors="replace").split("\0")[:-1]


def _is_shown(name: str) -> bool:
    """Whether imports show who uses a file."""
    return name.endswith(_CODE) and Path(name).name not in BUILD_SCRIPTS


def _is_unread(place: Path, top: Path, own: Collection[str]) -> bool:
    """Whether no case reads a file, by its name."""
    within = place.relative_to(top)
    if within.suffix in _TEXTS or within.parts[0] == _OF_GITHUB or _COMPILED in within.parts:
        return True
    return any(place.is_relative_to(one) for one in own)
