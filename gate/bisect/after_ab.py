"""``ab``, and after a regression since the anchor a bisection of the commits in between, in the time left."""

import shlex
import sys
from argparse import Namespace
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO

from gate.bisect.command import search_points
from gate.bisect.points import Question, parse_ends
from gate.bisect.search import choose_metric
from gate.cli import ab
from gate.cli.setup import Project
from gate.decide.explain.inquiry import CAUSES
from gate.errors import ExitCode, InterruptedRunError, MachineError, UsageError
from gate.records.cases import Metric, Policy
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import BASE_ARM
from gate.records.verdict import Cause, Verdict
from gate.revisions import describe_resolved_commit
from gate.units import format_duration

_LEAST_S = 60.0  # the ends alone take two pairs


def run_ab(options: Namespace) -> ExitCode:
    return ab.run_ab(options, find_first_bad)


def find_first_bad(project: Project, policy: Policy, verdict: Verdict, options: Namespace) -> Cause | None:
    """Bisect what got worst between both commits; ``None`` where the time left does not show the commit."""
    chosen, base = _choose(verdict), verdict.base
    left_s = 60 * options.minutes - (verdict.wall_s - verdict.toolchain_s)
    is_clean = base is not None and base.commit and not verdict.provenance.dirty
    # A bisection measures no uncommitted code.
    if not (chosen and base and is_clean) or left_s < _LEAST_S or _is_elsewhere(options):
        return None
    case_id, metric = chosen
    bad = base.head_commit or verdict.provenance.commit
    asked = {"good": base.commit, "bad": bad, "pythons": (), "minutes": left_s / 60, "resume": False}
    cases = tuple(case for case in verdict.cases if case.id == case_id)
    config = replace(project.config, select=case_id)
    try:
        question = Question(
            options=Namespace(**{**vars(options), **asked}),
            project=replace(project, config=config, cases=cases),
            policy=policy,
            ends=parse_ends(Namespace(**asked), config.directory),
            metric=metric,
        )
        words = ["compile-gate", "bisect", case_id, *([metric] if metric else []), "--good", base.commit]
        command = shlex.join([*words, "--bad", bad, "--out", str(config.out)])
        # Its lines are progress here: the report alone is for stdout.
        with redirect_stdout(StringIO() if options.quiet else sys.stderr):
            print(f"bisecting for at most {format_duration(left_s)}, as by: {command}")
            finding = search_points(question)
    except (UsageError, MachineError) as error:
        print(f"note: no bisection: {error.what}. {error.fix}", file=sys.stderr)
        return None
    except (KeyboardInterrupt, InterruptedRunError):  # all that the verdict rests on is measured
        print("note: stopped; the verdict is of what was measured before", file=sys.stderr)
        return None
    if finding.code is not ExitCode.PASS:
        return None
    _, _, subject = describe_resolved_commit(config.directory, finding.point).partition(" ")
    fact = Fact(
        code=Code.FIRST_BAD,
        numbers={"steps": finding.steps},
        names=name_words(commit=finding.point, subject=subject),
    )
    return Cause(case_id=case_id, fact=fact, weight=CAUSES[Code.FIRST_BAD][0])


def _is_elsewhere(options: Namespace) -> bool:
    """A bisection has one lane, this interpreter and a real device."""
    return bool(options.base_python or options.lanes or options.target)


def _choose(verdict: Verdict) -> tuple[str, Metric | None] | None:
    """What got worst, or else a case that fails on head alone."""
    if row := choose_metric(verdict.comparisons):
        return row.case_id, row.metric
    before = {failure.case_id for failure in verdict.failures if failure.arm == BASE_ARM}
    failed = [failure.case_id for failure in verdict.failures if failure.case_id not in before]
    return (failed[0], None) if failed else None
