"""What a comment may ask for, and what it accepts of a verdict: its words, acceptances, the answer; pure.

Anybody could have written the verdict, so of it only cases that the default branch knows, metrics and
numbers are taken. The answer does not repeat the reason: whoever gave it wrote it in the comment.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

from gate.decide.conclude.accept import apply_acceptances, can_be_accepted, compute_acceptance_limit
from gate.decide.conclude.coverage import is_lack_accepted, list_uncompared, measure_coverage
from gate.decide.conclude.outcome import decide_outcome
from gate.errors import UsageError
from gate.files.entry import LINE
from gate.project.registry import select_cases
from gate.publish.trusted import get_environment_id
from gate.records.cases import Acceptance, Case, Metric, Policy
from gate.records.shown import Shown
from gate.records.verdict import Comparison, Outcome, Reason, Status
from gate.report.markdown import escape_code, render_table
from gate.report.words.templates import SENTENCES, name_metric
from gate.store.acceptances import compute_expiry
from gate.units import count_noun, join_some, render_allowance, render_change

ACCEPT_COMMAND = "/accept-regression"
REFRESH_COMMAND = "/refresh-baselines"
# What may follow each command, and how that is written.
_WORDS = {
    ACCEPT_COMMAND: (
        ("select", "metric", "sha", "reason"),
        f'Write: {ACCEPT_COMMAND} [select=bert/*] [metric=compiled_latency] [commit] reason="..."',
    ),
    REFRESH_COMMAND: (("select", "sha"), f"Write: {REFRESH_COMMAND} [select=tag:smoke] [commit]"),
}
_COMMIT = re.compile(r"[0-9a-f]{7,40}")  # an id, or enough of its beginning
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


def parse_words(name: str, words: tuple[str, ...]) -> CommandWords:
    """Parse the words after a command.

    Raises:
        CommandRefusedError: One of them means nothing, or there is no reason for an acceptance.
    """
    known, usage = _WORDS[name]
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
    parsed = CommandWords(**found)
    reason = parsed.reason.strip()
    if "reason" in known and not (LINE.holds(reason) and reason.isprintable()):
        raise CommandRefusedError(f"its reason is missing, or is not {LINE.what}", usage)
    return replace(parsed, reason=reason)


def _read_word(match: re.Match[str]) -> tuple[str, object]:
    """Read one word as a key and its value; an empty key for one that means nothing."""
    *reasons, word = match.groups()
    if word is None:
        return "reason", next(text for text in reasons if text is not None)
    if select := parse_select(word):
        return "select", select
    if word in _METRICS:
        return "metric", _METRICS[word]
    return ("sha", word) if _COMMIT.fullmatch(word) else ("", "")


def parse_select(word: str) -> str:
    """Parse the word ``select=...`` of a command; empty where it is none."""
    match = _SELECT.fullmatch(word)
    return match[1] if match else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptTerms:
    """What the default branch says, where the gate's run left its verdict, and the ISO date of today."""

    cases: tuple[Case, ...]
    workflow: str  # the path of the file that runs the gate
    artifact_name: str
    today: str
    gate: str = ""  # whose artifact is read, as acceptances name it


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """What is accepted of a run: ``rows`` are what regressed, with an acceptance each; then come cases.

    ``remaining`` is what the same measurements would come to under it; ``trouble`` says why the check
    was not started again, and is empty where it was.
    """

    acceptances: tuple[Acceptance, ...]
    rows: tuple[Comparison, ...]
    remaining: Outcome
    left: int  # regressions that it does not cover
    undecided: tuple[Comparison, ...]  # of the cases whose regressions it covers: they may follow
    is_lack_accepted: bool  # no case without a baseline is left either, that nobody accepts
    run_url: str = ""
    trouble: str = ""


def accept_verdict(verdict: Shown, request: AuthorizedCommand, terms: AcceptTerms) -> Accepted:
    """Accept just what regressed and is meant, and find what the same measurements come to then.

    Each acceptance allows what was measured and no more. Where nothing would be compared then, or nothing
    was, and the comment means everything, the lack of baselines is accepted as well.

    Raises:
        CommandRefusedError: Nothing is left that could be accepted.
    """
    words, meant = request.words, _find_meant(request.words, terms.cases)
    rows = tuple(
        one
        for one in verdict.comparisons
        if can_be_accepted(one) and one.case_id in meant and words.metric in {None, one.metric}
    )
    shared = Acceptance(
        case="",
        reason=words.reason,
        author=request.author,
        expires=compute_expiry(terms.today),
        environment=get_environment_id(verdict),
        commit=request.head_sha,
        gate=terms.gate,
    )
    accepted = tuple(
        replace(shared, case=one.case_id, metric=one.metric, allowance=compute_acceptance_limit(one))
        for one in rows
    )
    if not words.is_narrow:
        lacking = _list_lacking(verdict, accepted, terms)
        accepted = (*accepted, *(replace(shared, case=case) for case in lacking))
    if not accepted:
        raise CommandRefusedError(*(_NOTHING_NAMED if words.is_narrow else _refuse(verdict.outcome)))
    policy, covered = _make_policy(accepted, terms), {row.case_id for row in rows}
    remaining = apply_acceptances(verdict.comparisons, policy)
    return Accepted(
        acceptances=accepted,
        rows=rows,
        remaining=decide_outcome(remaining, finished=verdict.tally.finished),
        left=sum(map(can_be_accepted, remaining)),
        undecided=tuple(
            one
            for one in remaining
            if one.decides and one.status is Status.INCONCLUSIVE and one.case_id in covered
        ),
        is_lack_accepted=is_lack_accepted(remaining, policy),
    )


def _make_policy(accepted: tuple[Acceptance, ...], terms: AcceptTerms) -> Policy:
    commits = tuple(dict.fromkeys(one.commit for one in accepted))
    return Policy(thresholds={}, acceptances=accepted, commits=commits, today=terms.today)


def _find_meant(words: CommandWords, cases: tuple[Case, ...]) -> set[str]:
    try:
        return {case.id for case in (select_cases(cases, words.select) if words.select else cases)}
    except UsageError:
        raise CommandRefusedError(
            "the selection names no case of the default branch's registry", "See `compile-gate models`."
        ) from None


def _list_lacking(verdict: Shown, accepted: tuple[Acceptance, ...], terms: AcceptTerms) -> tuple[str, ...]:
    """List the known cases without a baseline, where that alone fails once what regressed is accepted."""
    after = apply_acceptances(verdict.comparisons, _make_policy(accepted, terms))
    outcome = decide_outcome(after, finished=verdict.tally.finished)
    # A PASS that failed all the same asks for everything to have a baseline.
    is_partial = outcome is Outcome.PASS and not accepted and not measure_coverage(after).is_whole
    known = {case.id for case in terms.cases} if outcome is Outcome.NOTHING_COMPARED or is_partial else set()
    return tuple(case for case in list_uncompared(after) if case in known)


_NOTHING_NAMED = "no regression is among what the command names", "The report of the check lists them."


def _refuse(outcome: Outcome) -> tuple[str, str]:
    """Why nothing of a verdict can be accepted, and what to do."""
    code = outcome.lower()
    return SENTENCES["unacceptable"][code], SENTENCES["unacceptable_fixes"][code]


def write_message(request: AuthorizedCommand, accepted: Accepted) -> str:
    """Write the commit's message; GitHub's own words and numbers are all that is in it."""
    count = len(accepted.rows)
    what = [count_noun(count, "regression")] if count else []
    what += ["a lack of baselines"] if len(accepted.acceptances) > count else []
    return (
        f"Accept {' and '.join(what)} of {request.head_sha[:12]}\n\n"
        f"By {request.author}, on pull request {request.pr_number}.\n"
    )


MAX_ACCEPTED_ROWS = 40  # a reader has seen them in the report already


def render_accepted(accepted: Accepted) -> str:
    """Render what was accepted, what that leaves, and what happens now, as Markdown."""
    first = accepted.acceptances[0]  # all of one comment, and so of one gate, environment and day
    removed = " or is removed" if any(row.reason is Reason.REMOVED for row in accepted.rows) else ""
    what = f"{len(accepted.rows)} of what regressed{removed}" if accepted.rows else "the lack of baselines"
    left = SENTENCES["remaining"].get(accepted.remaining.lower(), "")
    if accepted.left:
        count = f"{accepted.left} {'regression is' if accepted.left == 1 else 'regressions are'}"
        left = f"{count} not covered by it: the check stays red."
    elif accepted.remaining is Outcome.NOTHING_COMPARED and accepted.is_lack_accepted:
        left = "Nothing was compared; the check says so, and is green."
    parts = (
        f"Accepted for commit {first.commit[:12]} alone, until {first.expires}: {what}.",
        f"It counts for {escape_code(first.gate)} on {escape_code(first.environment)}, and nowhere else.",
        _render_rows(accepted) if accepted.rows else "",
        left,
        _describe_undecided(accepted),
        _describe_next(accepted),
    )
    return "\n\n".join(filter(None, parts))


def _render_rows(accepted: Accepted) -> str:
    left = len(accepted.rows) - MAX_ACCEPTED_ROWS
    shown = zip(accepted.rows[:MAX_ACCEPTED_ROWS], accepted.acceptances, strict=False)
    return render_table(
        ("case", "metric", "measured", "accepted up to"),
        {"measured", "accepted up to"},
        [_list_cells(row, entry) for row, entry in shown],
        f"... and {left} more" if left > 0 else "",
    )


def _list_cells(row: Comparison, entry: Acceptance) -> tuple[str, ...]:
    if row.reason is Reason.REMOVED:
        return escape_code(row.case_id), "the whole case", "removed", ""
    change = render_change(row.metric, row.change.centre) if row.change else ""
    allowance = render_allowance(row.metric, entry.allowance)
    return escape_code(row.case_id), name_metric(row.metric), change, allowance


def _describe_undecided(accepted: Accepted) -> str:
    """Say which times of the accepted cases may turn red yet: nobody accepts what nobody has measured."""
    if not accepted.undecided:
        return ""
    metrics = join_some(tuple(dict.fromkeys(name_metric(one.metric) for one in accepted.undecided)))
    return (
        f"Inconclusive so far, and not covered: {metrics}. If the next run finds them worse, comment again."
    )


def _describe_next(accepted: Accepted) -> str:
    run = f"[the check]({accepted.run_url})"
    if accepted.trouble:
        return (
            f"It could not be started again: re-run the failed jobs of {run} yourself."
            " A new commit needs a new acceptance."
        )
    return f"Now {run} runs again, and counts it. A new commit needs a new acceptance."
