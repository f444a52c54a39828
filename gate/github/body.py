"""The text of the comment: the trusted report, shortened until it fits, below a marker line; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from gate.decide.coverage import Coverage
from gate.github.artifact import NEXT_STEPS, Refusal
from gate.github.events import WorkflowRun
from gate.records import Outcome, Status, Verdict
from gate.report.markdown import OUTCOME_SIGNS, escape_text, render_markdown
from gate.report.rows import render_counts

# GitHub's limit is 65,536 characters, by a count that it does not define: bytes are never fewer.
MAX_BODY_BYTES = 60_000
_MARKER = re.compile(
    r"<!-- compile-gate key=(?P<key>[A-Za-z0-9_.-]{1,40}) run=(?P<run>[0-9]{1,19}) "
    r"attempt=(?P<attempt>[0-9]{1,6}) head=(?P<head>[0-9a-f]{40,64}) -->"
)
_FAILING = frozenset({Status.REGRESSED, Status.FAILED, Status.MISSING, Status.INCONCLUSIVE})


@dataclass(frozen=True, kw_only=True, slots=True)
class Marker:
    """The first line of a comment: whose it is among several gates, and which run it tells of."""

    key: str
    run_id: int
    attempt: int
    head_sha: str

    @property
    def order(self) -> tuple[int, int]:
        """Greater is newer."""
        return (self.run_id, self.attempt)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What came of a run: a trusted verdict, or why there is none.

    ``counts``, ``case_count`` and ``coverage`` are of all comparisons and cases, also of those that are
    not shown.
    ``preface`` is a paragraph of Markdown that stands ahead of the report.
    """

    run: WorkflowRun
    verdict: Verdict | None = None
    counts: tuple[tuple[Status, int], ...] = ()
    case_count: int = 0
    coverage: Coverage = field(default_factory=Coverage)
    refusal: Refusal | None = None
    preface: str = ""

    @property
    def outcome(self) -> Outcome:
        """The verdict's outcome; INCOMPLETE without one, since nothing is known."""
        return self.verdict.outcome if self.verdict else Outcome.INCOMPLETE


def make_marker(key: str, run: WorkflowRun) -> Marker:
    """Make the marker of a run's comment."""
    return Marker(key=key, run_id=run.id, attempt=run.attempt, head_sha=run.head_sha)


def render_marker(marker: Marker) -> str:
    """Render the line, which Markdown does not show."""
    return (
        f"<!-- compile-gate key={marker.key} run={marker.run_id} attempt={marker.attempt}"
        f" head={marker.head_sha} -->"
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
    )


def render_body(marker: Marker, finding: Finding, limit_bytes: int = MAX_BODY_BYTES) -> str:
    """Render the comment: in full, else the failing cases, else counts and a link."""
    for text in _list_levels(finding):
        body = f"{render_marker(marker)}\n{text}"
        if len(body.encode()) <= limit_bytes:
            return body
    return f"{render_marker(marker)}\n{_render_counts(finding)}"


def render_report(finding: Finding) -> str:
    """Render what the comment says, without its marker; for the job summary."""
    return next(_list_levels(finding))


def describe_outcome(finding: Finding) -> str:
    """Describe the outcome in one line of plain text: for a commit status."""
    if finding.verdict is None:
        return f"no result: {finding.refusal.value if finding.refusal else 'unknown'}"
    return f"{finding.outcome.value}: {render_counts(finding.counts)}"


def _list_levels(finding: Finding) -> Iterator[str]:
    verdict = finding.verdict
    if verdict is None:
        yield _render_refusal(finding)
        return
    preface = f"{finding.preface}\n\n" if finding.preface else ""
    origin = _render_origin(finding.run)
    yield f"{preface}{render_markdown(verdict).rstrip()}\n\n{origin}\n"
    yield f"{preface}{render_markdown(_keep_failing(verdict)).rstrip()}\n\n{_CUT}\n\n{origin}\n"


_CUT = "*Shortened to the failing cases: the whole report is in the run's summary.*"


def _keep_failing(verdict: Verdict) -> Verdict:
    comparisons = tuple(one for one in verdict.comparisons if one.decides and one.status in _FAILING)
    failing = {one.case_id for one in comparisons}
    return replace(
        verdict,
        cases=tuple(case for case in verdict.cases if case.id in failing),
        comparisons=comparisons,
        explanations=(),
    )


def _render_counts(finding: Finding) -> str:
    """The last resort: its size does not depend on the verdict's."""
    sign = OUTCOME_SIGNS[finding.outcome]
    text = escape_text(describe_outcome(finding))
    return f"## {sign} {text}\n\nThe report is too long for a comment.\n\n{_render_origin(finding.run)}\n"


_LOOK = "See the run's log, fix what stopped it and run it again."


def _render_refusal(finding: Finding) -> str:
    refusal = finding.refusal or Refusal.NO_ARTIFACT
    ended = f" The run ended with: {finding.run.conclusion}." if finding.run.conclusion else ""
    return (
        f"## {OUTCOME_SIGNS[Outcome.INCOMPLETE]} INCOMPLETE: there is no verdict\n\n"
        f"{_capitalize(refusal.value)}.{escape_text(ended)} Nothing is known about this commit.\n\n"
        f"**Next**\n\n- {NEXT_STEPS.get(refusal, _LOOK)}\n\n"
        f"{_render_origin(finding.run)}\n"
    )


def _render_origin(run: WorkflowRun) -> str:
    again = f", attempt {run.attempt}" if run.attempt > 1 else ""
    return (
        f"<sub>Commit {run.head_sha[:12]}, [run {run.id}]({run.url}){again}. Written by compile-gate.</sub>"
    )


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
