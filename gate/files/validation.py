"""Values that do not fit their type: each with its place, what is wrong and the fix."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gate.files.untrusted import format_value

_MAX_NAME_CHARS = 100  # of a word that could be a slip of the pen; comparing takes their square
_MAX_MEMBERS_NAMED = 9  # of an enumeration, in the problem: what is still read on one line
_MAX_KEYS_NAMED = 24  # known keys listed in a fix; every record of ours has fewer than that
_MAX_KEY_CHARS = 60  # of a key in a key path: more than any of ours
MAX_INVALID = 20  # collected of one value: more fill a screen, and fixing these may fix the others
Values = Mapping[str, Any]  # of an entry's keys that are right by themselves


@dataclass(kw_only=True, slots=True)
class InvalidValue:
    """One value that does not fit; containers add where it was as it bubbles up."""

    problem: str
    fix: str
    says_little: bool = False  # the fix repeats the problem: an example of the key says more
    path: list[str] = field(default_factory=list)  # innermost first

    def render_path(self) -> str:
        """Render where it was, outermost first: ``.trials[3].index``."""
        return "".join(reversed(self.path))


def format_key(key: object) -> str:
    """Format one key as a piece of a key path: ``.name``, or ``['odd name']``."""
    text = str(key)
    is_plain = len(text) <= _MAX_KEY_CHARS and text.isidentifier()
    return f".{text}" if is_plain else f"[{format_value(key)}]"


class ValidationError(Exception):
    """Values that do not fit, in the order in which they were met; ``rest`` is what fits of a mapping."""

    def __init__(self, found: list[InvalidValue], rest: dict[Any, Any] | None = None) -> None:
        super().__init__(found[0].problem)
        self.found = found
        self.rest = rest


def refuse(problem: str, fix: str, *, says_little: bool = False) -> ValidationError:
    """Make the error of one value."""
    return ValidationError([InvalidValue(problem=problem, fix=fix, says_little=says_little)])


def expect(what: str, value: object, fix: str = "") -> ValidationError:
    """Make the error of a value that is not ``what`` was expected."""
    problem = f"expected {what}, got {format_value(value)}"
    return refuse(problem, fix or f"Write {what} there.", says_little=not fix)


def expect_member(value: object, known: Sequence[str]) -> ValidationError:
    """Make the error of a value that is none of the known ones."""
    nearest = find_nearest(value, known) if isinstance(value, str) else ""
    names = ", ".join(known)
    told = f"one of {names}" if len(known) <= _MAX_MEMBERS_NAMED else f"one of {len(known)} names"
    problem = f"expected {told}, got {format_value(value)}"
    if nearest:
        return refuse(problem, f"Did you mean {nearest!r}?")
    return refuse(problem, f"Write one of {names}.", says_little=len(known) <= _MAX_MEMBERS_NAMED)


def expect_key(name: object, known: Iterable[str]) -> ValidationError:
    """Make the error of a key that is none of the known ones."""
    names = sorted(known)
    listed = ", ".join(names[:_MAX_KEYS_NAMED])
    return refuse("unknown key", suggest_nearest(str(name), names, f"Known keys: {listed}."))


def find_nearest(name: str, known: Iterable[str]) -> str:
    """Find the known name that is most like ``name``; ``""`` when none is, or it is too long to be meant."""
    if len(name) > _MAX_NAME_CHARS:
        return ""
    names = list(known)
    swapped = [other for other in names if sorted(other) == sorted(name)]
    return next(iter(swapped + difflib.get_close_matches(name, names, n=1, cutoff=0.6)), "")


def suggest_nearest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Suggest the known name that is most like ``name``; ``otherwise`` when none is."""
    nearest = find_nearest(name, known)
    return f"Did you mean {nearest!r}?" if nearest else otherwise


class Collector:
    """Goes on after an item that does not fit, to the next one."""

    def __init__(self) -> None:
        self.found: list[InvalidValue] = []

    def add(self, error: ValidationError, step: str) -> None:
        """Note what was wrong with the item at ``step``; raises once there are enough."""
        for invalid in error.found:
            invalid.path.append(step)
        self.found += error.found
        if len(self.found) >= MAX_INVALID:
            self.close()

    def close(self, rest: dict[Any, Any] | None = None) -> None:
        """Raise what was collected, if anything was; ``rest`` is what fits of a mapping."""
        if self.found:
            raise ValidationError(self.found, rest)
