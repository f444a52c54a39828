"""Telling how an upgrade went: one issue an environment, a job summary, annotations, outputs.

The artifact is as hostile here as that of a pull request: what measured it ran a new stack from a
package index. So nothing of it is told but numbers, releases and cases that the base commit knows.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace

from gate.decide.coverage import measure_coverage
from gate.decide.outcome import FailOn
from gate.decide.side_advice import list_pair_notes
from gate.errors import UsageError
from gate.github.artifact import RefusedError, fetch_verdict
from gate.github.body import make_marker, render_body
from gate.github.errors import GitHubError
from gate.github.events import PULL_REQUEST_EVENTS, WorkflowRun, load_run
from gate.github.finding import Finding
from gate.github.issue import IssueBoard, IssueWish, WrittenIssue
from gate.github.publish import (
    CommentWhen,
    Context,
    Publication,
    Troubles,
    describe_finding,
    is_wanted,
    list_annotations,
    make_failure,
    render_summary,
)
from gate.github.trusted import Base, make_trusted_verdict, note_unknown
from gate.records import Run, Status, Verdict
from gate.report.content import count_statuses
from gate.report.markdown import escape_code
from gate.report.upgrade import find_stacks, render_upgrade

_TITLE = "compile-gate: upgrade of the stack"
_DEFAULT_KEY = "default"
_MAX_NAMED = 6  # cases in a command
_WORSE = frozenset({Status.REGRESSED, Status.FAILED, Status.MISSING})
MAX_COMMAND = 1200  # characters: six long case ids


@dataclass(frozen=True, kw_only=True, slots=True)
class UpgradeSettings:
    """What to publish and how; as the action's inputs of the same names.

    ``conclusion`` is how the job that measured ended, since the run itself has not ended yet.
    """

    run_id: int
    conclusion: str = ""
    artifact_name: str = "compile-gate"
    issue: CommentWhen = CommentWhen.ON_CHANGE
    key: str = _DEFAULT_KEY
    fail_on: FailOn = FailOn.REGRESSION


def publish_upgrade(context: Context, settings: UpgradeSettings) -> Publication:
    """Tell the verdict of a run that held one stack against another.

    Raises:
        UsageError: The run measured a pull request. Nothing that GitHub does is an error here.
    """
    try:
        run = _find_run(context, settings)
        finding = _make_finding(context, settings, run)
    except GitHubError as error:
        return make_failure(f"The verdict could not be fetched: {error.what}. {error.fix}")
    troubles, written = Troubles(), list[WrittenIssue]()
    if settings.issue is not CommentWhen.NEVER:
        troubles.attempt(
            "The issue was not written",
            lambda: written.append(_write_issue(context, settings, finding)),
        )
    notes = [f"Issue of {settings.key}: {one.action.value}." for one in written]
    return Publication(
        outputs=describe_finding(finding) | {"issue-url": written[0].url if written else ""},
        summary=render_summary(finding, notes or ["No issue was written."], troubles.lines),
        lines=tuple(list_annotations(finding, troubles.lines)),
        troubles=tuple(troubles.lines),
    )


def _find_run(context: Context, settings: UpgradeSettings) -> WorkflowRun:
    run = load_run(context.client, context.repository, settings.run_id)
    if run.event in PULL_REQUEST_EVENTS or run.head_repository != run.repository:
        raise UsageError(
            f"run {run.id} measured a pull request", "Publish runs of a schedule or a dispatch as upgrades."
        )
    return replace(run, conclusion=run.conclusion or settings.conclusion)


def _make_finding(context: Context, settings: UpgradeSettings, run: WorkflowRun) -> Finding:
    try:
        verdict = fetch_verdict(context.client, context.repository, run, settings.artifact_name)
    except RefusedError as error:
        return Finding(run=run, refusal=error.refusal)
    return make_upgrade_finding(verdict, context.base, run, settings.fail_on)


def make_upgrade_finding(
    verdict: Verdict, base: Base, run: WorkflowRun, fail_on: FailOn = FailOn.REGRESSION
) -> Finding:
    """Make what may be told of an upgrade's verdict that anybody could have written."""
    trusted = make_trusted_verdict(verdict, base, run)
    shown = Run(
        cases=trusted.cases, environment=trusted.environment, provenance=trusted.provenance, finished=True
    )
    trusted = replace(
        trusted,
        notes=(*note_unknown(verdict, trusted.cases), *list_pair_notes(shown, trusted, base.policy)),
    )
    return Finding(
        run=run,
        verdict=trusted,
        fail_on=fail_on,
        steps=list_upgrade_steps(trusted),
        counts=count_statuses(verdict),
        case_count=len(verdict.cases),
        coverage=measure_coverage(verdict.comparisons),
        preface=render_upgrade(trusted, escape_code, find_stacks(verdict)),
    )


def list_upgrade_steps(verdict: Verdict) -> tuple[str, ...]:
    """What to do next about an upgrade, in Markdown: fixed words and cases that the base commit knows."""
    deciding = [one for one in verdict.comparisons if one.decides]
    worse = dict.fromkeys(one.case_id for one in deciding if one.status in _WORSE)
    open_cases = dict.fromkeys(one.case_id for one in deciding if one.status is Status.INCONCLUSIVE)
    if worse:
        return ("Stay on the old stack until this is fixed.", _suggest_pairs("To see it again", worse))
    if open_cases:
        more = "Start the workflow `upgrade` again, by hand or with more `minutes`: more pairs may tell."
        return (more, _suggest_pairs("Or compare these cases alone", open_cases))
    return ("Take the new stack: pin it on a branch, and start the workflow `gate-refresh` on that branch.",)


def _suggest_pairs(why: str, case_ids: Iterable[str]) -> str:
    """The command for who has both stacks on that machine, by some of the cases."""
    named = shlex.quote(",".join([*case_ids][:_MAX_NAMED]))
    command = f"compile-gate ab --base-python OLD --head-python NEW --select {named}"
    return f"{why}, on that machine, with both interpreters: {escape_code(command, MAX_COMMAND)}"


def _write_issue(context: Context, settings: UpgradeSettings, finding: Finding) -> WrittenIssue:
    marker = make_marker(settings.key, finding.run)
    wish = IssueWish(
        repository=context.repository,
        title=_TITLE if settings.key == _DEFAULT_KEY else f"{_TITLE} ({settings.key})",
        marker=marker,
        body=render_body(marker, finding),
        is_wanted=is_wanted(finding, settings.issue),
    )
    return IssueBoard(context.client, context.author).write(wish)
