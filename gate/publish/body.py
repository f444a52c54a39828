"""The text of the comment: the trusted report, shortened until it fits, below a marker line; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from gate.publish.ci_run import CiRun
from gate.publish.steps import link_commit, link_run, list_comment_steps
from gate.publish.submitted_verdict import Refusal
from gate.publish.trusted_result import TrustedResult
from gate.records import Code, Outcome, Status
from gate.report.content import render_counts
from gate.report.markdown import BAD, GOOD, UNSURE, Layout, ReportFrame, escape_text, render_markdown
from gate.report.words.notes import write_note

# GitHub's limit is 65,536 characters, by a count that it does not define: bytes are never fewer.
MAX_BODY_BYTES = 60_000
DEFAULT_ARTIFACT = "compile-gate"
_MARKER = re.compile(
    r"<!-- compile-gate key=(?P<key>[A-Za-z0-9_.-]{1,40}) run=(?P<run>[0-9]{1,19}) "
    r"attempt=(?P<attempt>[0-9]{1,6}) head=(?P<head>[0-9a-f]{40,64})"
    r"(?: artifact=(?P<artifact>[A-Za-z0-9_.-]{1,100}))? -->"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Marker:
    """The first line of a comment: whose it is among several gates, and which run it tells of."""

    key: str
    run_id: int
    attempt: int
    head_sha: str
    artifact: str = DEFAULT_ARTIFACT
    started: str = field(default="", compare=False)  # known of the run that is told; not written down

    @property
    def order(self) -> tuple[int, int]:
        """Greater is newer."""
        return (self.run_id, self.attempt)


def make_marker(key: str, run: CiRun, artifact: str = DEFAULT_ARTIFACT) -> Marker:
    """Make the marker of a run's comment."""
    return Marker(
        key=key,
        run_id=run.id,
        attempt=run.attempt,
        head_sha=run.head_sha,
        artifact=artifact,
        started=run.started,
    )


def render_marker(marker: Marker) -> str:
    """Render the line, which Markdown does not show."""
    artifact = f" artifact={marker.artifact}" if marker.artifact != DEFAULT_ARTIFACT else ""
    return (
        f"<!-- compile-gate key={marker.key} run={marker.run_id} attempt={marker.attempt}"
        f" head={marker.head_sha}{artifact} -->"
    )


def parse_marker(body: str) -> Marker | None:
    """Parse the first line of a comment; ``None`` where it is no marker."""
    match = _MARKER.fullmatch(body.partition("\n")[0].rstrip("\r"))
    if match is None:
        return None
    return Marker(
        key=match["key"],
        run_id=int(match["run"]),
        attempt=int(match["attempt"]),
        head_sha=match["head"],
        artifact=match["artifact"] or DEFAULT_ARTIFACT,
    )


def render_body(marker: Marker, finding: TrustedResult, limit_bytes: int = MAX_BODY_BYTES) -> str:
    """Render the comment: in full, else with the top rows that fit, else counts and a link."""
    for text in _list_levels(finding):
        body = f"{render_marker(marker)}\n{text}"
        if len(body.encode()) <= limit_bytes:
            return body
    return f"{render_marker(marker)}\n{_render_counts(finding)}"


def render_trusted_report(finding: TrustedResult) -> str:
    """Render what the comment says, without its marker; for the job summary."""
    return next(_list_levels(finding))


def describe_outcome(finding: TrustedResult) -> str:
    """Describe the outcome in one line of plain text: for a commit status."""
    if finding.verdict is None:
        return f"no result: {finding.refusal.value if finding.refusal else 'unknown'}"
    ended = f"; but the run ended with {finding.run.conclusion}" if finding.has_other_trouble else ""
    lack = "; no gate.yml was found: only compile-gate's own models" if _is_nobodys(finding) else ""
    return f"{finding.outcome.value}: {render_counts(finding.counts)}{lack}{ended}"


def _is_nobodys(finding: TrustedResult) -> bool:
    """Whether it is about the reference models alone, since there was no configuration."""
    headline = finding.verdict.headline if finding.verdict else ()
    return any(fact.code is Code.NO_CONFIGURATION for fact in headline)


# Of a comment that is too long the tail goes first, and the rows last.
_LAYOUTS = (
    Layout(commands=False, summary=False),
    Layout(commands=False, summary=False, case_lines=0, members=20, blocks=6),
    Layout(commands=False, summary=False, case_lines=0, members=10, blocks=2, rows=20),
    Layout(commands=False, summary=False, case_lines=0, blocks=0, rows=20, footer=False),
    Layout(commands=False, summary=False, case_lines=0, blocks=0, rows=5, footer=False, notes=False),
    Layout(commands=False, summary=False, case_lines=0, blocks=0, rows=1, footer=False, notes=False),
)
# A pass that has nothing to show is one line, and what limits it.
_BRIEF = Layout(counts=False, case_lines=0, footer=False, summary=False)
_CUT = "*Shortened: the whole report is in the artifact of the run.*"


def _list_levels(finding: TrustedResult) -> Iterator[str]:
    verdict = finding.verdict
    if verdict is None:
        yield _render_refusal(finding)
        return
    origin = _render_origin(finding)
    steps = list_comment_steps(finding)
    frame = ReportFrame(
        heading=_write_heading(finding),
        sign=_find_sign(finding),
        counts=finding.counts,
        preface=finding.preface,
        steps=steps,
    )
    is_quiet = finding.outcome is Outcome.PASS and not finding.has_other_trouble and not finding.preface
    if is_quiet and all(status is Status.UNCHANGED for status, _ in finding.counts):
        yield f"{render_markdown(verdict, _BRIEF, frame)}\n{origin}\n"
    for position, layout in enumerate(_LAYOUTS):
        cut = f"{_CUT}\n\n" if position else ""
        yield f"{render_markdown(verdict, layout, frame)}\n{cut}{origin}\n"


def _write_heading(finding: TrustedResult) -> str:
    """The first line where it is not the verdict's own: a verdict of PASS must not stand over a red check."""
    if finding.has_other_trouble:
        ended = escape_text(finding.run.conclusion)
        return f"The run ended with {ended}, although its verdict is {finding.outcome.value}"
    if finding.outcome is Outcome.PASS and finding.is_failing:
        return "Not everything has a baseline, which this check demands"
    return ""


def _find_sign(finding: TrustedResult) -> str:
    """Red where the check is red; what it lets pass without being a pass is in between. Then whose it is."""
    return _name(finding, _choose_sign(finding))


def _name(finding: TrustedResult, sign: str) -> str:
    return f"{sign} `{finding.gate}`:" if finding.gate else sign


def _choose_sign(finding: TrustedResult) -> str:
    if finding.is_failing or finding.has_other_trouble:
        return BAD
    return GOOD if finding.outcome is Outcome.PASS and not _is_nobodys(finding) else UNSURE


def _render_counts(finding: TrustedResult) -> str:
    """The last resort: its size does not depend on the verdict's."""
    sign = _find_sign(finding)
    text = escape_text(describe_outcome(finding))
    return f"## {sign} {text}\n\nThe report is too long for a comment.\n\n{_render_origin(finding)}\n"


def _render_refusal(finding: TrustedResult) -> str:
    refusal = finding.refusal or Refusal.NO_ARTIFACT
    ended = f" The run ended with: {finding.run.conclusion}." if finding.run.conclusion else ""
    steps = "\n".join(f"- {step}" for step in list_comment_steps(finding))
    remarks = "\n".join(f"- {escape_text(write_note(fact))}" for fact in finding.remarks)
    notes = f"**Notes**\n\n{remarks}\n\n" if remarks else ""
    return (
        f"## {_name(finding, BAD)} INCOMPLETE: there is no verdict\n\n"
        f"{_capitalize(refusal.value)}.{escape_text(ended)} Nothing is known about this commit.\n\n"
        f"**Next**\n\n{steps}\n\n{notes}{_render_origin(finding)}\n"
    )


def _render_origin(finding: TrustedResult) -> str:
    """Which commits, which run, and where all of it is: links of GitHub's own names for them."""
    run = finding.run
    against = f" against {link_commit(run, finding.base_sha)}" if finding.base_sha else ""
    again = f", attempt {run.attempt}" if run.attempt > 1 else ""
    return (
        f"<sub>Commit {link_commit(run, run.head_sha)}{against}, {link_run(run)}{again},"
        f" [report and data]({run.url}#artifacts). Written by compile-gate.</sub>"
    )


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
