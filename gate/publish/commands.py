"""What a comment may ask for, and what its words say."""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from gate.errors import UsageError
from gate.files.entry import LINE
from gate.records import Metric

ACCEPT_COMMAND = "/accept-regression"
ACCEPT_USAGE = f'Write: {ACCEPT_COMMAND} [select=bert/*] [metric=compiled_latency] [commit] reason="..."'
REFRESH_COMMAND = "/refresh-baselines"
REFRESH_USAGE = f"Write: {REFRESH_COMMAND} [select=tag:smoke] [commit]"
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_SELECT = re.compile(r"select=([A-Za-z0-9_!*?\[][A-Za-z0-9_.,:/!*?\[\]-]{0,499})")
_METRICS = {f"metric={metric.value}": metric for metric in Metric}
# A reason has spaces: in quotes, as they are typed or as a phone turns them, or up to the line's end.
_WORD = re.compile(r'reason=(?:"([^"]*)"|“([^“”]*)”|([^"“].*))(?= |$)|(\S+)(?= |$)')


class CommandRefusedError(UsageError):
    """Somebody asked and it is not done; ``what`` and ``fix`` hold no foreign text.

    ``is_told`` is whether a comment says so: none does to a stranger whose words mean nothing.
    """

    is_told = True


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandWords:
    """What the words after a command say; an empty ``select`` and no metric mean everything."""

    select: str = ""
    metric: Metric | None = None
    sha: str = ""  # or its beginning
    reason: str = ""

    @property
    def is_narrow(self) -> bool:
        """Whether only some of what regressed is meant."""
        return bool(self.select or self.metric)


@dataclass(frozen=True, kw_only=True, slots=True)
class AuthorizedCommand:
    """A command that may go on: by whom and when, of which commit of which pull request, of what.

    What was started by hand is of a branch of the repository, and of no pull request.
    """

    author: str
    head_sha: str
    head_branch: str
    words: CommandWords
    asked: str = ""  # as 2026-11-01T12:00:00Z; "" where GitHub does not tell
    head_repository: int = 0  # id; 0 where the fork is gone
    pr_number: int = 0


def split_command(body: str, name: str) -> tuple[str, ...] | None:
    """Split the first line of a comment into the words after the command; None where it is not this one."""
    lines = body.strip().splitlines()
    first, *words = lines[0].split() if lines else [""]
    return tuple(words) if first == name else None


def parse_refresh_words(words: tuple[str, ...]) -> CommandWords:
    """Parse the words after the command.

    Raises:
        CommandRefusedError: One of them means nothing.
    """
    return _parse_words(words, frozenset(("select", "sha")), REFRESH_USAGE)


def parse_accept_words(words: tuple[str, ...]) -> CommandWords:
    """Parse the words after the command.

    Raises:
        CommandRefusedError: One of them means nothing, or there is no reason.
    """
    parsed = _parse_words(words, frozenset(("select", "metric", "sha", "reason")), ACCEPT_USAGE)
    reason = parsed.reason.strip()
    if not LINE.holds(reason) or not reason.isprintable():
        raise CommandRefusedError(f"its reason is missing, or is not {LINE.what}", ACCEPT_USAGE)
    return replace(parsed, reason=reason)


def _parse_words(words: tuple[str, ...], known: Collection[str], usage: str) -> CommandWords:
    found: dict[str, Any] = {}
    line, place = " ".join(words), 0
    while place < len(line):
        match = _WORD.match(line, place)
        key, value = _read_word(match) if match else ("", "")
        if match is None or key not in known or key in found:
            count = line.count(" ", 0, place) + 1
            raise CommandRefusedError(f"word {count} after the command cannot be read", usage)
        found[key] = value
        place = match.end() + 1
    return CommandWords(**found)


def _read_word(match: re.Match[str]) -> tuple[str, object]:
    """Read one word as a key and its value; an empty key for one that means nothing."""
    *reasons, word = match.groups()
    if word is None:
        return "reason", next(text for text in reasons if text is not None)
    if select := parse_select(word):
        return "select", select
    if word in _METRICS:
        return "metric", _METRICS[word]
    return ("sha", word) if is_commit(word) else ("", "")


def parse_select(word: str) -> str:
    """Parse the word ``select=...`` of a command; empty where it is none."""
    match = _SELECT.fullmatch(word)
    return match[1] if match else ""


def is_commit(word: str) -> bool:
    """Whether a word is a commit id, or enough of its beginning."""
    return _COMMIT.fullmatch(word) is not None
