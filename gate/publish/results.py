"""What is published of a finished run, or of an upgrade: the result, outputs, the summary, the next steps.

An upgrade compares two stacks on one code. Its report begins with geometric means by model, so that twice as
fast and twice as slow cancel out.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from statistics import geometric_mean

from gate.decide.conclude.accept import note_quarantine
from gate.decide.conclude.coverage import measure_coverage
from gate.decide.conclude.exit_codes import FailOn
from gate.decide.explain.notes import list_notes, note_target
from gate.fingerprint import compute_environment_id
from gate.metrics import SPECS, Family, Role, Unit, select_metrics
from gate.publish.body import render_trusted_report
from gate.publish.submitted import CiRun
from gate.publish.trusted import (
    NO_CONTEXT,
    Base,
    RunContext,
    TrustedResult,
    make_trusted_verdict,
    note_unknown,
)
from gate.records.cases import Metric
from gate.records.run import BASE_ARM, Environment, Run
from gate.records.shown import Shown, StackPart
from gate.records.verdict import JUDGED, Comparison, Outcome, PairBase, Status, Verdict
from gate.report.clean import clean_line
from gate.report.content import MAX_STEP, count_statuses
from gate.report.markdown import escape_code, escape_text
from gate.report.words.steps import write_ab
from gate.report.words.templates import describe_change, name_metric
from gate.units import format_noun, format_percent

MAX_PARTS = 8  # of a stack that a line names
MAX_TITLE_PARTS = 2
_CPU_BUILD = "+cpu"
_NOT_INSTALLED = frozenset({"python", "driver", "CUDA"})  # by pip
MAX_MODELS = 8  # named in a sentence; a person reads no more, and the tables have the rest
_MAX_NAME = 120  # characters of a model's name
_VISIBLE = 0.005  # a mean below half a percent is not worth a line
# What decides by itself: a ratio only repeats what it is a ratio of.
_MEANS = select_metrics(
    lambda spec: (
        spec.role is Role.DECIDES and spec.follows is None and spec.unit in {Unit.SECONDS, Unit.BYTES}
    )
)
_WORSE = frozenset({Status.REGRESSED, Status.FAILED})
_AGAIN = "Start the workflow `upgrade` again, by hand or with more `minutes`"
_CLOSING = (
    "The first scheduled run that passes closes this issue. One by hand does not: it may be of other cases,"
    " or of another stack."
)


def render_upgrade(verdict: Verdict, shown: Shown) -> str:
    means = (_render_means(verdict, metric) for metric in _MEANS)
    upgrade = name_upgrade(shown, MAX_PARTS) or "Nothing is known of what was upgraded"
    listed = (f"- {line}" for line in (*_warn_of_builds(shown.stack), *means) if line)
    paragraphs = (f"{upgrade}. {_render_working(verdict)}", "\n".join(listed), "\n".join(_render_pins(shown)))
    return "\n\n".join(filter(None, paragraphs))


def name_upgrade(shown: Shown, most: int) -> str:
    """Name at most ``most`` packages, and count the rest."""
    moved = [part for part in shown.stack if part.base != part.head]
    named = [f"{part.name} {part.base or 'none'} -> {part.head or 'none'}" for part in moved[:most]]
    if not named and shown.stack:
        named = [f"torch {shown.stack[0].head} in both stacks"]
    left = len(moved[most:]) + shown.more_upgraded
    more = [f"{format_noun(left, 'other package')} changed"] if left else []
    return ", ".join((*named, *more))


def _render_working(verdict: Verdict) -> str:
    rows = [row for row in verdict.comparisons if row.decides]
    broken = {row.case_id for row in rows if row.status is Status.FAILED or _is_off(row)}
    judged = {row.case_id for row in rows if row.status in JUDGED}
    open_cases = {case.id for case in verdict.cases} - broken - judged
    unknown = f"; of {len(open_cases)} nothing is known" if open_cases else ""
    works = f"Cases that compile and agree on the new stack: {len(judged - broken)} of {len(verdict.cases)}"
    return f"{works}, measured side by side with the old one{unknown}."


def _is_off(row: Comparison) -> bool:
    return row.status is Status.REGRESSED and SPECS[row.metric].family is Family.LOG2


def _warn_of_builds(stack: Sequence[StackPart]) -> Iterator[str]:
    """A build for CPUs starts and compiles otherwise than one for GPUs."""
    for part in stack:
        if part.name == "torch" and part.base.endswith(_CPU_BUILD) != part.head.endswith(_CPU_BUILD):
            yield "One side is a CPU build and the other is not: starts and compiles differ for that alone."


def _render_pins(shown: Shown) -> Iterator[str]:
    parts = [part for part in shown.stack if part.name not in _NOT_INSTALLED]
    if any(part.base != part.head for part in parts):
        yield "<details><summary>Both stacks</summary>\n"
        for side in ("base", "head"):
            pins = (f"{part.name}=={getattr(part, side)}" for part in parts if getattr(part, side))
            index = _find_index(next((getattr(part, side) for part in parts if part.name == "torch"), ""))
            yield f"- {'old' if side == 'base' else 'new'}: `pip install {index}{' '.join(pins)}`"
        yield "\n</details>"


def _find_index(torch: str) -> str:
    """Find the option for the index that has a build by its name: the package index has it by none."""
    release, _, build = torch.partition("+")
    channel = "nightly/" if ".dev" in release else "test/" if "rc" in release else ""
    is_there = re.fullmatch(r"cpu|xpu|(cu|rocm)[\d.]+", build)
    return f"--extra-index-url https://download.pytorch.org/whl/{channel}{build} " if is_there else ""


def _is_tiny(row: Comparison) -> bool:
    """Whether only bytes or seconds keep a change from counting: 39 % of 3 MiB say nothing of a stack."""
    change, threshold = row.change, row.threshold
    is_far = change is not None and threshold is not None and abs(change.centre) > threshold.relative
    return is_far and row.status is Status.UNCHANGED


def _render_means(verdict: Verdict, metric: Metric) -> str:
    models = {case.id: case.model for case in verdict.cases}
    by_model: dict[str, list[float]] = {}
    for row in verdict.comparisons:
        counts = row.metric is metric and row.status in JUDGED and row.case_id in models
        if counts and not _is_tiny(row) and row.change and -1.0 < row.change.centre < math.inf:
            by_model.setdefault(models[row.case_id], []).append(1.0 + row.change.centre)
    means = {model: geometric_mean(factors) - 1.0 for model, factors in by_model.items()}
    if not any(abs(mean) >= _VISIBLE for mean in means.values()):
        return ""
    total = geometric_mean(factor for factors in by_model.values() for factor in factors) - 1.0
    ordered = sorted(means, key=lambda model: (-means[model], model))
    left = len(ordered) - MAX_MODELS
    rest = ""
    if left > 0:  # those at both ends moved most
        rest = f" and {format_noun(left, 'more model')}"
        ordered = [*ordered[: MAX_MODELS // 2], *ordered[-MAX_MODELS // 2 :]]
    named = ", ".join(
        f"{escape_code(clean_line(model, _MAX_NAME))} {format_percent(means[model])}" for model in ordered
    )
    return f"Mean of {name_metric(metric)}: {describe_change(metric, total)}; {named}{rest}."


class CommentWhen(StrEnum):
    """When a first comment is wanted; an existing one is kept up to date, unless never."""

    ALWAYS = "always"
    ON_CHANGE = "on-change"  # whenever it is not a plain PASS
    ON_FAILURE = "on-failure"  # whenever the gate fails
    NEVER = "never"


def make_finding(
    verdict: Shown,
    base: Base,
    run: CiRun,
    context: RunContext = NO_CONTEXT,
    fail_on: FailOn = FailOn.REGRESSION,
) -> TrustedResult:
    return TrustedResult(
        run=run,
        verdict=make_trusted_verdict(verdict, base, run, context),
        fail_on=fail_on,
        counts=count_statuses(verdict),
        case_count=len(verdict.cases),
        coverage=measure_coverage(verdict.comparisons),
        base=base,
        context=context,
    )


def describe_outputs(
    outcome: Outcome, counts: Mapping[Status, int], cases: int, environment: Environment | None
) -> dict[str, object]:
    return {
        "verdict": outcome.value,
        "regressions": counts.get(Status.REGRESSED, 0),
        "improvements": counts.get(Status.IMPROVED, 0),
        "inconclusive": counts.get(Status.INCONCLUSIVE, 0),
        "cases": cases,
        "environment-id": compute_environment_id(environment) if environment else "",
    }


def is_wanted(finding: TrustedResult, when: CommentWhen) -> bool:
    if when is CommentWhen.ON_CHANGE:
        return not finding.is_plain
    if when is CommentWhen.ON_FAILURE:
        return finding.is_failing or finding.has_other_trouble
    return when is CommentWhen.ALWAYS


def describe_finding(finding: TrustedResult) -> dict[str, object]:
    verdict = finding.verdict
    environment = verdict.environment if verdict and verdict.environment.device_kind else None
    outputs = describe_outputs(finding.outcome, dict(finding.counts), finding.case_count, environment)
    return {**outputs, "head-sha": finding.run.head_sha}


def render_summary(finding: TrustedResult, notes: list[str], troubles: list[str]) -> str:
    lines = [*notes, *(f"Trouble: {trouble}" for trouble in troubles)]
    listed = "\n".join(f"- {escape_text(line)}" for line in lines)
    return f"{render_trusted_report(finding)}\n**Published**\n\n{listed}\n"


def make_upgrade_finding(
    verdict: Shown, base: Base, run: CiRun, fail_on: FailOn = FailOn.REGRESSION
) -> TrustedResult:
    trusted = make_trusted_verdict(verdict, base, run)
    shown = Run(
        cases=trusted.cases, environment=trusted.environment, provenance=trusted.provenance, finished=True
    )
    notes = (
        *note_unknown(verdict, trusted.cases),
        *note_target(verdict.is_target),
        *list_notes(shown, trusted.comparisons, (), base.policy, in_pairs=True),
        *note_quarantine(trusted.comparisons, base.policy),
    )
    return replace(
        make_finding(verdict, base, run, fail_on=fail_on),
        verdict=replace(trusted, notes=notes),
        steps=list_upgrade_steps(trusted, can_refresh=base.can_refresh),
        title=name_upgrade(verdict, MAX_TITLE_PARTS),
        preface=render_upgrade(trusted, verdict),
    )


def list_upgrade_steps(verdict: Verdict, *, can_refresh: bool) -> tuple[str, ...]:
    """In Markdown. ``can_refresh`` is whether a workflow of the repository records baselines."""
    broken = list(dict.fromkeys(each.case_id for each in verdict.failures if each.arm == BASE_ARM))
    worse = [case_id for case_id in _list_cases(verdict, _WORSE) if case_id not in broken]
    missing, undecided = (_list_cases(verdict, {status}) for status in (Status.MISSING, Status.INCONCLUSIVE))
    if worse:
        return (
            "Stay on the old stack until this is fixed.",
            _suggest_pairs("To see it again", worse),
            _CLOSING,
        )
    if broken:
        named = escape_code(", ".join(broken), MAX_STEP)
        return (f"Mend what fails on the old stack, so that it can be compared: {named}.", _CLOSING)
    if missing:
        read = (
            "Read the log of the run: did these cases fail on the old stack, or was there no time for them?"
        )
        return (f"{read} {_AGAIN}.", _suggest_pairs("Or compare them alone", missing), _CLOSING)
    if undecided:
        alone = _suggest_pairs("Or compare these cases alone", undecided)
        return (f"{_AGAIN}: more pairs may settle it.", alone, _CLOSING)
    if verdict.outcome is not Outcome.PASS:
        return ()  # nothing was judged: the steps of every check hold
    record = "start `compile-gate-respond` or `gate-refresh` on that branch"
    by_hand = "record its baselines there, on that machine, by `compile-gate baseline refresh`"
    return (f"Take the new stack: pin it on a branch, and {record if can_refresh else by_hand}.",)


def _list_cases(verdict: Verdict, statuses: Collection[Status]) -> list[str]:
    rows = (row for row in verdict.comparisons if row.decides and row.status in statuses)
    return list(dict.fromkeys(row.case_id for row in rows))


def _suggest_pairs(why: str, case_ids: Iterable[str]) -> str:
    command = write_ab(case_ids, PairBase(commit="", other_stack=True))
    return f"{why}, on that machine, with both interpreters: {escape_code(command, MAX_STEP)}"
