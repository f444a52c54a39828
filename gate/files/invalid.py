"""Values that do not fit: what they are called in a message, and what fits instead."""

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

# What every JSON reader can hold exactly; also keeps int-to-text conversion cheap.
MAX_INTEGER = 2**63 - 1
_SHOWN_CHARS = 60  # of a foreign value in a message: enough to recognise it, and still one line
_MAX_NAME_CHARS = 100  # of a word that could be a slip of the pen; comparing takes their square
MAX_MEMBERS_NAMED = 9  # of an enumeration, in the problem: what is still read on one line
_MAX_KEYS_NAMED = 24  # known keys listed in a fix; every record of ours has fewer than that
_MAX_KEY_CHARS = 60  # of a key in a key path: more than any of ours
MAX_INVALID = 20  # of one file: more fill a screen, and fixing these may fix the others


def quote_value(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_INTEGER:
        return "a huge integer"
    if isinstance(value, str):
        value = value[:_SHOWN_CHARS]  # before its repr, which may be ten times as long
    text = "null" if value is None else repr(value)
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "..."


@dataclass(frozen=True, kw_only=True, slots=True)
class InvalidValue:
    key: str
    problem: str
    fix: str


def format_key(key: object) -> str:
    """``.name``, or ``['odd name']``."""
    text = str(key)
    is_plain = len(text) <= _MAX_KEY_CHARS and text.isidentifier()
    return f".{text}" if is_plain else f"[{quote_value(key)}]"


def is_number(value: object) -> TypeGuard[float]:
    """Finite, and held by every JSON reader; ``true`` is none."""
    return math.isfinite(value) if isinstance(value, float) else is_integer(value)


def is_integer(value: object) -> TypeGuard[int]:
    """At most 64 bits, written as a whole number."""
    return type(value) is int and -MAX_INTEGER <= value <= MAX_INTEGER


def is_text(value: object) -> TypeGuard[str]:
    """Without lone surrogates, which JSON can spell and no report could hold."""
    if not isinstance(value, str):
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def describe_member(value: object, known: Sequence[str]) -> tuple[str, str]:
    names = ", ".join(known)
    listed = f"one of {names}" if len(known) <= MAX_MEMBERS_NAMED else f"one of {len(known)} names"
    nearest = suggest_nearest(value, known) if isinstance(value, str) else ""
    return f"expected {listed}, got {quote_value(value)}", nearest or f"Write one of {names}."


def describe_key(name: object, known: Iterable[str]) -> tuple[str, str]:
    names = sorted(known)
    listed = f"Known keys: {', '.join(names[:_MAX_KEYS_NAMED])}." if names else "Remove it: there are none."
    return "unknown key", suggest_nearest(str(name), names, listed)


def find_nearest(name: str, known: Iterable[str]) -> str:
    """``""`` where no name is near, or it is too long to be meant."""
    if len(name) > _MAX_NAME_CHARS:
        return ""
    names = list(known)
    swapped = [other for other in names if sorted(other) == sorted(name)]
    return next(iter(swapped + difflib.get_close_matches(name, names)), "")


def suggest_nearest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    nearest = find_nearest(name, known)
    return f"Did you mean {nearest!r}?" if nearest else otherwise
