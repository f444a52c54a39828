"""A verdict in every format and in every place where it is published."""

from collections.abc import Mapping

from gate.action.step import list_annotations as list_action_annotations
from gate.errors import ExitCode
from gate.files.codec import SHOWN
from gate.publish.body import make_marker, render_body
from gate.publish.results import make_finding, make_upgrade_finding, render_upgrade
from gate.publish.shown import SHOWN_FILE, make_shown
from gate.publish.submitted import CiRun
from gate.publish.trusted import Base, RunContext
from gate.records.shown import Shown
from gate.records.verdict import Verdict
from gate.report import render
from gate.report.text import Detail, render_text
from tests.recorded.runs import DIRECTORY, Situation

RUN = CiRun(
    id=100,
    attempt=1,
    event="pull_request",
    conclusion="failure",
    head_sha="a" * 40,
    head_branch="topic",
    head_owner="octo-org",
    head_repository=1000,
    repository=1000,
    started="2026-11-22T11:00:00Z",
    url="https://github.com/octo-org/models/actions/runs/100",
)


def render_reports(verdict: Verdict) -> Mapping[str, str]:
    """Each report of the measuring job, and its annotations."""
    notes = list_action_annotations(verdict, DIRECTORY, int(ExitCode.REGRESSION))
    return {
        "text": render(verdict, "text"),
        "markdown": render(verdict, "markdown"),
        "junit": render(verdict, "junit"),
        "annotations": "".join(f"{line}\n" for line in notes),
    }


def pass_on(verdict: Verdict) -> Shown:
    """What the publishing job loads from the file that the measuring job uploads."""
    return SHOWN.decode(SHOWN.encode(make_shown(verdict)).encode(), SHOWN_FILE)


def render_comment(verdict: Verdict, situation: Situation) -> Mapping[str, str]:
    """The pull request's comment; the base commit has all cases but one."""
    cases = situation.run.cases[:-1] or situation.run.cases
    policy = situation.policy
    base = Base(cases=cases, baselines=situation.baselines, policy=policy)
    finding = make_finding(pass_on(verdict), base, RUN, RunContext(base_sha="b" * 40 if verdict.base else ""))
    marker = make_marker("default", RUN)
    return {"comment": render_body(marker, finding)}


def render_all(verdict: Verdict, situation: Situation) -> dict[str, str]:
    """All reports; of pairs also what is published of an upgrade."""
    texts = {**render_reports(verdict), **render_comment(verdict, situation)}
    if situation.judged_by == "pairs":
        finding = make_upgrade_finding(
            pass_on(verdict), Base(cases=situation.run.cases, policy=situation.policy), RUN
        )
        texts["issue"] = render_body(make_marker("default", RUN), finding)
        texts["upgrade"] = render_upgrade(verdict, make_shown(verdict))
        texts["everything"] = render_text(verdict, width=160, detail=Detail.EVERYTHING)
    return texts
