"""What is told of a finished run: the trusted result, whether it is worth a comment, outputs, the summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum

from gate.decide.conclude.coverage import measure_coverage
from gate.decide.conclude.outcome import FailOn
from gate.fingerprint import compute_environment_id
from gate.publish.body import render_trusted_report
from gate.publish.ci_run import CiRun
from gate.publish.trusted import NOTHING_KNOWN, Base, Known, make_trusted_verdict
from gate.publish.trusted_result import TrustedResult
from gate.records import Environment, Outcome, Status, Verdict
from gate.report.content import count_statuses
from gate.report.markdown import escape_text


class CommentWhen(StrEnum):
    """When a first comment is wanted; one that exists is always kept up to date, unless never."""

    ALWAYS = "always"
    ON_CHANGE = "on-change"  # whenever it is not a plain PASS
    ON_FAILURE = "on-failure"  # whenever the gate fails
    NEVER = "never"


def make_finding(
    verdict: Verdict,
    base: Base,
    run: CiRun,
    known: Known = NOTHING_KNOWN,
    fail_on: FailOn = FailOn.REGRESSION,
) -> TrustedResult:
    """Make what may be told of a verdict that anybody could have written."""
    return replace(
        make_result(verdict, make_trusted_verdict(verdict, base, run, known), run, fail_on),
        base_sha=known.base_sha,
        is_waived=known.approved.is_waived,
        can_accept=base.can_accept,
        can_refresh=base.can_refresh,
    )


def make_result(verdict: Verdict, shown: Verdict, run: CiRun, fail_on: FailOn) -> TrustedResult:
    """Make the result of a run of which ``shown`` may be told; all of ``verdict`` is counted."""
    return TrustedResult(
        run=run,
        verdict=shown,
        fail_on=fail_on,
        counts=count_statuses(verdict),
        case_count=len(verdict.cases),
        coverage=measure_coverage(verdict.comparisons),
    )


def describe_outputs(
    outcome: Outcome, counts: Mapping[Status, int], cases: int, environment: Environment | None
) -> dict[str, object]:
    """Describe what was decided as outputs; ``counts`` are of what decides."""
    return {
        "verdict": outcome.value,
        "regressions": counts.get(Status.REGRESSED, 0),
        "improvements": counts.get(Status.IMPROVED, 0),
        "inconclusive": counts.get(Status.INCONCLUSIVE, 0),
        "cases": cases,
        "environment-id": compute_environment_id(environment) if environment else "",
    }


def is_wanted(finding: TrustedResult, when: CommentWhen) -> bool:
    """Whether this is to be told where nothing has been told yet."""
    if when is CommentWhen.ON_CHANGE:
        is_plain = finding.outcome is Outcome.PASS and not finding.is_failing
        return not is_plain or finding.has_other_trouble
    if when is CommentWhen.ON_FAILURE:
        return finding.is_failing or finding.has_other_trouble
    return when is CommentWhen.ALWAYS


def describe_finding(finding: TrustedResult) -> dict[str, object]:
    """Describe what came of a run as outputs."""
    verdict = finding.verdict
    known = verdict.environment if verdict and verdict.environment.device_kind else None
    outputs = describe_outputs(finding.outcome, dict(finding.counts), finding.case_count, known)
    return {**outputs, "head-sha": finding.run.head_sha}


def render_summary(finding: TrustedResult, notes: list[str], troubles: list[str]) -> str:
    """Render the job summary: the report, then what became of telling it."""
    lines = [*notes, *(f"Trouble: {trouble}" for trouble in troubles)]
    listed = "\n".join(f"- {escape_text(line)}" for line in lines)
    return f"{render_trusted_report(finding)}\n**Published**\n\n{listed}\n"
