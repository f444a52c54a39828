"""What a comment may ask for, and what it accepts of a verdict: its words, acceptances, the answer; pure.

Anybody could have written the verdict: only its numbers, metrics and cases of the default branch count. The
answer does not repeat the reason, which stands in the comment.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

from gate.decide.conclude.accept import apply_acceptances, can_be_accepted, compute_acceptance_limit
from gate.decide.conclude.coverage import is_lack_accepted, list_uncompared
from gate.decide.conclude.outcome import decide_outcome
from gate.errors import UsageError
from gate.files.entry import LINE
from gate.project.selection import select_cases
from gate.publish.trusted import get_environment_id
from gate.records.cases import Acceptance, Case, Metric, Policy
from gate.records.shown import Shown
from gate.records.verdict import Comparison, Outcome, Reason, Status
from gate.report.markdown import escape_code, render_table
from gate.report.words.templates import SENTENCES, name_metric
from gate.store.commit_files import compute_expiry
from gate.units import format_allowance, format_change, format_noun, join_some

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
# A reason has spaces: in quotes, as they are typed or as a phone turns them, or up to the next key.
_WORD = re.compile(
    r'reason=(?:"([^"]*)"|“([^“”]*)”|([^"“](?:(?! (?:select|metric)=).)*))(?= |$)|(\S+)(?= |$)'
)
_NOTHING_NAMED = "no regression is among what the command names", "The report of the check lists them."
MAX_ACCEPTED_ROWS = 40  # a reader has seen them in the report already


class CommandRefusedError(UsageError):
    """``what`` and ``fix`` hold no foreign text.

    ``is_answered`` is whether a comment answers: a stranger whose words mean nothing gets none.
    """

    is_answered = True


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandWords:
    """An empty ``select`` and no metric mean everything."""

    select: str = ""
    metric: Metric | None = None
    sha: str = ""  # or its beginning
    reason: str = ""

    @property
    def is_narrow(self) -> bool:
        """Whether it means only some of what regressed."""
        return bool(self.select or self.metric)


@dataclass(frozen=True, kw_only=True, slots=True)
class AuthorizedCommand:
    """A dispatch by hand is for a branch of the repository, and no pull request."""

    author: str
    head_sha: str
    head_branch: str
    words: CommandWords
    asked: str = ""  # as 2026-11-01T12:00:00Z; "" where GitHub does not say
    head_repository: int = 0  # id; 0 where the fork is gone
    pr_number: int = 0


def split_command(body: str, name: str) -> tuple[str, ...] | None:
    """None where it is another command."""
    lines = body.strip().splitlines()
    first, *words = lines[0].split() if lines else [""]
    return tuple(words) if first == name else None


def parse_words(name: str, words: tuple[str, ...]) -> CommandWords:
    """Raises CommandRefusedError where a word means nothing, or an acceptance has no reason."""
    allowed, usage = _WORDS[name]
    values: dict[str, Any] = {}
    line = " ".join(words)
    for match in _WORD.finditer(line):
        key, value = _parse_word(match)
        if key not in allowed or key in values:
            count = line[: match.start()].count(" ") + 1
            raise CommandRefusedError(f"word {count} after the command cannot be read", usage)
        values[key] = value
    parsed = CommandWords(**values)
    reason = parsed.reason.strip()
    if "reason" in allowed and not (LINE.holds(reason) and reason.isprintable()):
        raise CommandRefusedError(f"its reason is missing, or is not {LINE.what}", usage)
    return replace(parsed, reason=reason)


def _parse_word(match: re.Match[str]) -> tuple[str, object]:
    """An empty key for a word that means nothing."""
    *reasons, word = match.groups()
    if word is None:
        return "reason", next(text for text in reasons if text is not None)
    if select := parse_select(word):
        return "select", select
    if word in _METRICS:
        return "metric", _METRICS[word]
    return ("sha", word) if _COMMIT.fullmatch(word) else ("", "")


def parse_select(word: str) -> str:
    """Empty where it is no ``select=...``."""
    match = _SELECT.fullmatch(word)
    return match[1] if match else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptTerms:
    """The default branch's cases, where the gate's run left its verdict, and the ISO date of today."""

    cases: tuple[Case, ...]
    workflow: str  # the path of the file that runs the gate
    artifact_name: str
    today: str
    gate: str = ""  # whose artifact is read, as acceptances name it


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """What is accepted of a run: an acceptance for each of ``rows``, which regressed, then those of cases.

    ``remaining`` is what the same measurements come to then; ``trouble`` says why the check was not started
    again.
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
    """Accept what regressed and is selected: as much as was measured, and no more.

    Where nothing would be compared then, and the comment selects everything, the lack of baselines is
    accepted too.

    Raises:
        CommandRefusedError: Nothing is left that could be accepted.
    """
    words, selected = request.words, _select_ids(request.words, terms.cases)
    rows = tuple(
        row
        for row in verdict.comparisons
        if can_be_accepted(row) and row.case_id in selected and words.metric in {None, row.metric}
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
        replace(shared, case=row.case_id, metric=row.metric, allowance=compute_acceptance_limit(row))
        for row in rows
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
            row
            for row in remaining
            if row.decides and row.status is Status.INCONCLUSIVE and row.case_id in covered
        ),
        is_lack_accepted=is_lack_accepted(remaining, policy),
    )


def _make_policy(accepted: tuple[Acceptance, ...], terms: AcceptTerms) -> Policy:
    commits = tuple(dict.fromkeys(acceptance.commit for acceptance in accepted))
    return Policy(thresholds={}, acceptances=accepted, commits=commits, today=terms.today)


def _select_ids(words: CommandWords, cases: tuple[Case, ...]) -> set[str]:
    try:
        return {case.id for case in (select_cases(cases, words.select) if words.select else cases)}
    except UsageError:
        raise CommandRefusedError(
            "the selection names no case of the default branch's registry", "See `compile-gate models`."
        ) from None


def _list_lacking(verdict: Shown, accepted: tuple[Acceptance, ...], terms: AcceptTerms) -> tuple[str, ...]:
    """List the cases without a baseline, if only that fails once what regressed is accepted."""
    after = apply_acceptances(verdict.comparisons, _make_policy(accepted, terms))
    outcome = decide_outcome(after, finished=verdict.tally.finished)
    # A PASS that failed all the same asks for everything to have a baseline.
    is_partial = outcome is Outcome.PASS and not accepted
    if outcome is not Outcome.NOTHING_COMPARED and not is_partial:
        return ()
    ours = {case.id for case in terms.cases}
    return tuple(case_id for case_id in list_uncompared(after) if case_id in ours)


def _refuse(outcome: Outcome) -> tuple[str, str]:
    code = outcome.lower()
    return SENTENCES["unacceptable"][code], SENTENCES["unacceptable_fixes"][code]


def write_message(request: AuthorizedCommand, accepted: Accepted) -> str:
    """It holds only GitHub's own words and numbers."""
    count = len(accepted.rows)
    what = [format_noun(count, "regression")] if count else []
    what += ["a lack of baselines"] if len(accepted.acceptances) > count else []
    return (
        f"Accept {' and '.join(what)} of {request.head_sha[:12]}\n\n"
        f"By {request.author}, on pull request {request.pr_number}.\n"
    )


def render_accepted(accepted: Accepted) -> str:
    first, *_ = accepted.acceptances  # all of one comment, and so of one gate, environment and day
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
    change = format_change(row.metric, row.change.centre) if row.change else ""
    allowance = format_allowance(row.metric, entry.allowance)
    return escape_code(row.case_id), name_metric(row.metric), change, allowance


def _describe_undecided(accepted: Accepted) -> str:
    """Name the times of accepted cases that may turn red yet: unmeasured, so not accepted."""
    if not accepted.undecided:
        return ""
    metrics = join_some(tuple(dict.fromkeys(name_metric(row.metric) for row in accepted.undecided)))
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
