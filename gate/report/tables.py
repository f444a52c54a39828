"""``models``, ``plan``, ``baseline show`` and ``doctor``: records as a table, or as JSON.

A table wider than the terminal is left so: a cut-off case id could not be copied.
"""

import json
from collections.abc import Container, Sequence

from gate.files.codec import encode
from gate.fingerprint import compute_environment_id
from gate.project.plan import shard_cases, sum_expected_s
from gate.records.cases import Case, group_by
from gate.records.events import Check
from gate.records.run import Baseline, CaseFailure
from gate.report.case_blocks import LOG_LINES
from gate.report.clean import align_columns, clean_line, clean_lines, count_columns
from gate.report.footer import SHOWN_COMMIT_CHARS
from gate.report.words.facts import describe_whole
from gate.units import format_age, format_duration, format_noun

JSON = "json"
_RIGHT = frozenset({"trials", "expected"})


def render_models(cases: Sequence[Case], table_format: str = "text") -> str:
    if table_format == JSON:
        return _render_json([encode(case) for case in cases])
    rows = [
        (case.id, " ".join(case.tags), format_duration(case.expected_s), case.factory or case.node)
        for case in cases
    ]
    table = render_table(("case", "tags", "expected", "made by"), rows)
    return f"{table}\n\n{format_noun(len(cases), 'case')}"


def render_plan(cases: tuple[Case, ...], trials: int, shards: int, table_format: str = "text") -> str:
    """What would run on each machine.

    Raises:
        UsageError: ``shards`` is not positive.
    """
    parts, whole_s = shard_cases(cases, shards), sum_expected_s(cases, trials)
    if table_format == JSON:
        listed = [
            {
                "shard": number,
                "expected_s": round(sum_expected_s(part, trials), 1),
                "cases": [case.id for case in part],
            }
            for number, part in enumerate(parts, start=1)
        ]
        return _render_json({"trials": trials, "expected_s": round(whole_s, 1), "shards": listed})
    rows = [
        (str(number), case.id, str(trials), format_duration(case.expected_s * trials))
        for number, part in enumerate(parts, start=1)
        for case in part
    ]
    table = render_table(("shard", "case", "trials", "expected"), rows)
    lines = [f"{format_noun(len(cases), 'case')}, about {format_duration(whole_s)} on one machine"]
    if len(parts) > 1:
        longest = max(sum_expected_s(part, trials) for part in parts)
        lines.append(f"about {format_duration(longest)} on {len(parts)} machines")
    return f"{table}\n\n{'; '.join(lines)}"


def render_baselines(
    baselines: Sequence[Baseline], now: str, where: str = "here", table_format: str = "text"
) -> str:
    """By environment; ``now`` is ISO 8601, ``where`` as in "in perf/baselines"."""
    if table_format == JSON:
        return _render_json([encode(baseline) for baseline in baselines])
    if not baselines:
        return f"no baselines are stored {where}; record some with: compile-gate baseline refresh"
    parts = []
    for name, group in group_by(
        baselines, lambda baseline: compute_environment_id(baseline.environment)
    ).items():
        rows = [_make_baseline_row(baseline, now) for baseline in group]
        table = render_table(("case", "age", "commit", "by", "trials"), rows)
        parts.append(f"{name} ({format_noun(len(group), 'baseline')})\n{table}")
    return "\n\n".join(parts)


def render_doctor(checks: Sequence[Check], table_format: str = "text") -> str:
    if table_format == JSON:
        return _render_json([encode(check) for check in checks])
    order = ("fail", "warn", "ok")
    ranked = sorted(checks, key=lambda check: order.index(check.level.value))
    width = max((len(check.name) for check in checks), default=0)
    lines = []
    for check in ranked:
        finding = clean_line(check.finding)
        lines.append(f"{check.level.value.upper():4}  {check.name:{width}}  {finding}".rstrip())
        if check.fix:
            lines.append(f"{' ' * (width + 8)}{clean_line(check.fix)}")
    failed = sum(check.level.value == "fail" for check in checks)
    warned = sum(check.level.value == "warn" for check in checks)
    fit = f"fit to judge, with {format_noun(warned, 'warning')}" if warned else "fit to judge"
    unfit = f"not fit to judge: {failed} of {len(checks)} checks failed"
    return "\n".join([*lines, "", unfit if failed else fit])


def _make_baseline_row(baseline: Baseline, now: str) -> tuple[str, ...]:
    provenance = baseline.provenance
    trials = max((len(values) for values in baseline.trials.values()), default=0)
    return (
        baseline.case_id,
        format_age(provenance.created, now).removesuffix(" old") or "unknown",
        (provenance.commit[:SHOWN_COMMIT_CHARS] or "unknown") + ("+" if provenance.dirty else ""),
        provenance.author or "unknown",
        f"{trials}{f', {baseline.disturbed} disturbed' if baseline.disturbed else ''}",
    )


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Container[str] = _RIGHT) -> str:
    cleaned = [header, *([clean_line(cell) for cell in row] for row in rows)]
    rule = ["-" * max(map(count_columns, column)) for column in zip(*cleaned, strict=True)]
    numbers = {number for number, title in enumerate(header) if title in right}
    return "\n".join(align_columns([cleaned[0], rule, *cleaned[1:]], numbers))


def _render_json(value: object) -> str:
    return json.dumps(value, indent=2, allow_nan=False)


def render_attempt(case_id: str, failure: CaseFailure | None) -> str:
    if failure is None:
        return f"ok      {clean_line(case_id)}\n"
    lines = [f"FAILED  {clean_line(case_id)}: {clean_line(describe_whole(failure))}"]
    lines += [f"    | {line}" for line in clean_lines(failure.log_tail, LOG_LINES)]
    lines += [f"    log: {clean_line(failure.log)}"] if failure.log else []
    return "\n".join(lines) + "\n"


def render_tally(cases: int, failed: int) -> str:
    if not failed:
        return f"{format_noun(cases, 'case')} can be built, called and traced. Nothing was measured."
    return f"{failed} of {format_noun(cases, 'case')} cannot be measured: `check` would be INCOMPLETE."
