"""``/accept-regression``: what a comment takes responsibility for, and whether its author may.

    /accept-regression [select=bert/*] [metric=compiled_latency] [commit] reason="why it is worth it"

Whoever may write to the repository may; nothing of the change is run for it, so a fork's will do. It is
for the commit that is the head now.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gate.errors import UsageError
from gate.github.authorize import parse_select
from gate.github.client import GitHubClient
from gate.github.command import (
    CommandRefusedError,
    CommentCommand,
    check_commit,
    check_writer,
    find_command,
    is_commit,
    load_pull,
)
from gate.github.context import JobContext
from gate.key_types import LINE
from gate.records import Metric

COMMAND = "/accept-regression"
USAGE = f'Write: {COMMAND} [select=bert/*] [metric=compiled_latency] [commit] reason="..."'
_METRICS = {f"metric={metric.value}": metric for metric in Metric}
# A reason has spaces: in quotes, as they are typed or as a phone turns them, or up to the line's end.
_WORD = re.compile(r'reason=(?:"([^"]*)"|“([^“”]*)”|([^"“].*))(?= |$)|(\S+)(?= |$)')


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptWords:
    """What the words after the command say; an empty ``select`` and no metric mean everything."""

    reason: str
    select: str = ""
    metric: Metric | None = None
    sha: str = ""  # or its beginning

    @property
    def is_narrow(self) -> bool:
        """Whether only some of what regressed is meant."""
        return bool(self.select or self.metric)


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptRequest:
    """An acceptance that may go on: by whom, of which commit of which pull request, of what."""

    author: str
    head_sha: str
    pr_number: int
    words: AcceptWords


def parse_accept_words(words: tuple[str, ...]) -> AcceptWords:
    """Parse the words after the command.

    Raises:
        CommandRefusedError: One of them means nothing, or there is no reason.
    """
    found: dict[str, object] = {}
    line, place = " ".join(words), 0
    while place < len(line):
        match = _WORD.match(line, place)
        key, value = _read_word(match) if match else ("", "")
        if match is None or not key or key in found:
            count = line.count(" ", 0, place) + 1
            raise CommandRefusedError(f"word {count} after the command cannot be read", USAGE)
        found[key] = value
        place = match.end() + 1
    reason = str(found.get("reason", "")).strip()
    if not LINE.holds(reason) or not reason.isprintable():
        raise CommandRefusedError(f"its reason is missing, or is not {LINE.what}", USAGE)
    return AcceptWords(**{**found, "reason": reason})  # type: ignore[arg-type] # each was read as its key's


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


def find_acceptance(context: JobContext) -> CommentCommand | None:
    """Find the comment that accepts a regression, if one started this job.

    Raises:
        UsageError: The workflow was started by something else than a comment.
    """
    if context.event_name != "issue_comment":
        raise UsageError(
            f"a regression cannot be accepted by the event {context.event_name!r}",
            "Start this workflow by issue_comment.",
        )
    return find_command(context, COMMAND)


def authorize_acceptance(
    client: GitHubClient, context: JobContext, command: CommentCommand | None
) -> AcceptRequest | None:
    """Decide about the comment that started this job; None where it accepts nothing.

    Raises:
        CommandRefusedError: It does, and may not; the message says why.
        GitHubError: GitHub could not be asked: nothing goes on then.
    """
    if command is None:
        return None
    words = parse_accept_words(command.words)
    author = check_writer(client, context, command.user)
    head = load_pull(client, context, command)
    check_commit(words.sha, head)
    return AcceptRequest(author=author, head_sha=head.sha, pr_number=command.number, words=words)
