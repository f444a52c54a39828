"""The text of the comment: the trusted report, its top rows alone, and what its reader can do; pure."""

import re
from dataclasses import dataclass, field

from gate.decide.conclude.accept import list_set_apart
from gate.publish.comment_commands import ACCEPT_COMMAND as ACCEPT
from gate.publish.comment_commands import REFRESH_COMMAND as REFRESH
from gate.publish.submitted import CiRun, Refusal
from gate.publish.trusted import TrustedResult
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.verdict import BROKEN, UNJUDGED, Outcome, PairBase, Reason, Status, Verdict
from gate.report.content import MAX_STEP, render_counts
from gate.report.markdown import (
    BAD,
    GOOD,
    UNSURE,
    Layout,
    ReportFrame,
    escape_code,
    escape_text,
    render_markdown,
)
from gate.report.words.facts import write_note
from gate.report.words.steps import write_ab, write_step
from gate.report.words.templates import SENTENCES, upper_first
from gate.units import join_some

_WRITER = "somebody with write access"
_PUSH = "Fix it and push: the check measures the new commit."
# A run's page on GitHub: below the page of its repository.
_REPOSITORY_RUN = re.compile(
    r"(https?://[A-Za-z0-9.:_-]+/[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)/actions/runs/[0-9]+"
)
_ACCEPT_FIRST = (
    "If it is intended: merge what `compile-gate baseline accept` writes in a pull request of its own,"
    " then update this branch."
)
_REMOVE_FIRST = (
    "If what is removed is meant to go: merge the change of `gate.yml` first, in a pull request of its own"
    " that leaves the code in place, then update this branch."
)
_ACCEPTING = f'comments `{ACCEPT} reason="..."`'
# GitHub's limit is 65,536 characters, by a count that it does not define: bytes are never fewer.
MAX_BODY_BYTES = 60_000
_MARKER = re.compile(
    r"<!-- compile-gate key=(?P<key>[A-Za-z0-9_.-]{1,40}) run=(?P<run>[0-9]{1,19}) "
    r"attempt=(?P<attempt>[0-9]{1,6}) head=(?P<head>[0-9a-f]{40,64}) -->"
)
_LAYOUT = Layout(is_local=False, rows=10, members=10, blocks=10)
# A pass that has nothing to show is one line, and what limits it.
_BRIEF = Layout(is_local=False, counts=False, case_lines=0, footer=False)
_WITHOUT_ARTIFACT = (Refusal.NO_ARTIFACT, Refusal.EXPIRED, Refusal.OLD_ATTEMPT, Refusal.SKIPPED)


def list_comment_steps(finding: TrustedResult) -> list[str]:
    run = finding.run
    if finding.verdict is None:
        how = "push or run it again" if run.decides_merging else "run it again"
        again = f"Open the log of {link_run(run)}, fix what stopped it, and {how}."
        return [SENTENCES["refusals"].get(finding.refusal.name.lower(), again)]
    what = escape_text(join_some(run.lost_jobs)) or "something besides the verdict"
    lost = " and left no verdict" if run.lost_jobs else ""
    look = f"Open the log of {link_run(run)}: {what} failed{lost}. Fix it and push."
    if finding.has_other_trouble:
        return [look]
    steps = list(finding.steps) or _list_by_outcome(finding, finding.verdict)
    return [look, *steps] if lost else steps


def _list_by_outcome(finding: TrustedResult, verdict: Verdict) -> list[str]:
    if verdict.outcome is Outcome.INCOMPLETE:
        return _list_incomplete_steps(finding, verdict)
    if verdict.outcome is Outcome.REGRESSION:
        return _list_regression_steps(finding, verdict)
    if verdict.outcome is Outcome.INCONCLUSIVE:
        again = f"To measure again: {_WRITER} opens {link_run(finding.run)} and chooses *Re-run jobs*."
        return [again] if finding.is_failing else ["Nothing: this does not fail the check.", again]
    if verdict.outcome is Outcome.NOTHING_COMPARED and (apart := list_set_apart(verdict.comparisons)):
        lift = Fact(code=Code.LIFT_QUARANTINE, numbers={"cases": len(apart)})
        return [write_step(lift, verdict).text]
    if finding.is_failing:
        accept = f"To let this commit pass without baselines: {_WRITER} {_ACCEPTING}."
        return [*([accept] if finding.base.can_accept else []), _write_baseline_step(finding)]
    return _list_pass_steps(finding, verdict)


def link_run(run: CiRun) -> str:
    return f"[run {run.id}]({run.url})"


def link_commit(run: CiRun, sha: str) -> str:
    """Linked where the run's address holds the repository's."""
    base = _REPOSITORY_RUN.fullmatch(run.url)
    return f"[{sha[:12]}]({base[1]}/commit/{sha})" if base else sha[:12]


def _list_incomplete_steps(finding: TrustedResult, verdict: Verdict) -> list[str]:
    broken = [row for row in verdict.comparisons if row.decides and row.status in BROKEN]
    is_removed = [row.reason is Reason.REMOVED for row in broken]
    fix = f"Open the log of {link_run(finding.run)}, fix what failed and push."
    steps = [fix] if not (is_removed and all(is_removed) and verdict.tally.finished) else []
    if not any(is_removed):
        return steps
    accept = f"If what is removed is meant to go: {_WRITER} {_ACCEPTING}. That accepts it for this commit."
    return [*steps, accept if finding.base.can_accept else _REMOVE_FIRST]


def _list_regression_steps(finding: TrustedResult, verdict: Verdict) -> list[str]:
    run = finding.run
    worse = [row for row in verdict.comparisons if row.decides and row.status is Status.REGRESSED]
    if not worse:
        named = f"The summary of {link_run(run)} names the cases: fix them and push."
        return [f"{named} They cannot be accepted before the default branch has them."]
    gravest = sorted(worse, key=lambda row: -row.severity)
    base = PairBase(commit=finding.context.base_sha) if finding.context.base_sha else None
    command = escape_code(write_ab((row.case_id for row in gravest), base), MAX_STEP)
    again = f"See it on your machine: {command}. The summary of {link_run(run)} has all the details."
    accept = f"If it is intended: {_WRITER} {_ACCEPTING}. That accepts these changes for this commit."
    return [again, _PUSH, accept if finding.base.can_accept else _ACCEPT_FIRST]


def _list_pass_steps(finding: TrustedResult, verdict: Verdict) -> list[str]:
    deciding = [row for row in verdict.comparisons if row.decides]
    unjudged = any(row.status in UNJUDGED for row in deciding)
    if unjudged or any(row.reason is Reason.FEW_TRIALS for row in deciding):
        return [_write_baseline_step(finding)]
    improved = any(row.status is Status.IMPROVED for row in deciding)
    return [_write_baseline_step(finding, "To make the improvement the new baseline")] if improved else []


def _write_baseline_step(finding: TrustedResult, why: str = "To have baselines for later changes") -> str:
    run = finding.run
    if not finding.base.can_refresh:
        by_hand = "records them on the machine that measures, by `compile-gate baseline refresh`"
        return f"{why}: {_WRITER} {by_hand}, and commits them."
    if run.is_of_pull_request and run.head_repository == run.repository:
        return f"{why}: {_WRITER} comments `{REFRESH}` and merges what it proposes."
    start = "starts `compile-gate-respond` or `gate-refresh` on the default branch"
    return f"{why}: {_WRITER} merges this, then {start}."


@dataclass(frozen=True, kw_only=True, slots=True)
class Marker:
    """The first line of a comment: of which gate and run it is."""

    key: str
    run_id: int
    attempt: int
    head_sha: str
    started: str = field(default="", compare=False)  # of the run that is published; not written down

    @property
    def order(self) -> tuple[int, int]:
        return (self.run_id, self.attempt)


def make_marker(key: str, run: CiRun) -> Marker:
    return Marker(key=key, run_id=run.id, attempt=run.attempt, head_sha=run.head_sha, started=run.started)


def render_marker(marker: Marker) -> str:
    return (
        f"<!-- compile-gate key={marker.key} run={marker.run_id} attempt={marker.attempt}"
        f" head={marker.head_sha} -->"
    )


def parse_marker(body: str) -> Marker | None:
    """``None`` where the first line is no marker."""
    match = _MARKER.fullmatch(body.partition("\n")[0].rstrip("\r"))
    if match is None:
        return None
    return Marker(
        key=match["key"],
        run_id=int(match["run"]),
        attempt=int(match["attempt"]),
        head_sha=match["head"],
    )


def render_body(marker: Marker, finding: TrustedResult, limit_bytes: int = MAX_BODY_BYTES) -> str:
    """Render the report with its top rows, or counts and a link where that is too long."""
    body = f"{render_marker(marker)}\n{render_trusted_report(finding)}"
    return (
        body if len(body.encode()) <= limit_bytes else f"{render_marker(marker)}\n{_render_counts(finding)}"
    )


def describe_outcome(finding: TrustedResult) -> str:
    """One line of plain text, for a commit status."""
    if finding.verdict is None:
        return f"no result: {finding.refusal.value}"
    ended = f"; but the run ended with {finding.run.conclusion}" if finding.has_other_trouble else ""
    return f"{finding.outcome.value}: {render_counts(finding.counts)}{ended}"


def render_trusted_report(finding: TrustedResult) -> str:
    verdict = finding.verdict
    if verdict is None:
        return _render_refusal(finding)
    frame = ReportFrame(
        heading=_write_heading(finding),
        sign=_choose_sign(finding),
        counts=finding.counts,
        origin=_write_origin(finding),
        preface=finding.preface,
        steps=list_comment_steps(finding),
    )
    is_quiet = finding.outcome is Outcome.PASS and not finding.has_other_trouble and not finding.preface
    is_brief = is_quiet and all(status is Status.UNCHANGED for status, _ in finding.counts)
    return render_markdown(verdict, _BRIEF if is_brief else _LAYOUT, frame)


def _write_heading(finding: TrustedResult) -> str:
    if finding.has_other_trouble:
        ended = escape_text(finding.run.conclusion)
        return f"The run ended with {ended}, although its verdict is {finding.outcome.value}"
    if finding.outcome is Outcome.PASS and finding.is_failing:
        return "Not everything has a baseline, which this check demands"
    return ""


def _choose_sign(finding: TrustedResult) -> str:
    if finding.is_failing or finding.has_other_trouble:
        return _add_gate(finding, BAD)
    return _add_gate(finding, GOOD if finding.outcome is Outcome.PASS else UNSURE)


def _add_gate(finding: TrustedResult, sign: str) -> str:
    return f"{sign} `{finding.gate}`:" if finding.gate else sign


def _render_counts(finding: TrustedResult) -> str:
    """The last resort: its size does not depend on the verdict's."""
    sign = _choose_sign(finding)
    text = escape_text(describe_outcome(finding))
    return f"## {sign} {text}\n\nThe report is too long for a comment.\n\n{_render_origin(finding)}\n"


def _render_refusal(finding: TrustedResult) -> str:
    run = finding.run
    ended = f" The run ended with: {run.conclusion}." if run.conclusion else ""
    ended += f" The step that failed: {run.failed_step}." if run.failed_step else ""
    unknown = "Nothing is known about this commit." if run.decides_merging else "Nothing was compared."
    steps = "\n".join(f"- {step}" for step in list_comment_steps(finding))
    remarks = "\n".join(f"- {escape_text(write_note(fact))}" for fact in finding.context.remarks)
    notes = f"**Notes**\n\n{remarks}\n\n" if remarks else ""
    return (
        f"## {_add_gate(finding, BAD)} INCOMPLETE: there is no verdict\n\n"
        f"{upper_first(finding.refusal.value)}.{escape_text(ended)} {unknown}\n\n"
        f"**Next**\n\n{steps}\n\n{notes}{_render_origin(finding)}\n"
    )


def _render_origin(finding: TrustedResult) -> str:
    return f"<sub>{_write_origin(finding)}</sub>"


def _write_origin(finding: TrustedResult) -> str:
    run = finding.run
    branch = f"{escape_code(run.head_branch)}, commit" if run.head_branch else "Commit"
    when = f", {run.started[:16].replace('T', ' ')} UTC" if run.started else ""
    against = f" against {link_commit(run, finding.context.base_sha)}" if finding.context.base_sha else ""
    again = f", attempt {run.attempt}" if run.attempt > 1 else ""
    data = f", [report and data]({run.url}#artifacts)" if _has_artifact(finding) else ""
    commit = link_commit(run, run.head_sha)
    return f"{branch} {commit}{against}{when}, {link_run(run)}{again}{data}. Written by compile-gate."


def _has_artifact(finding: TrustedResult) -> bool:
    return finding.verdict is not None or finding.refusal not in _WITHOUT_ARTIFACT
