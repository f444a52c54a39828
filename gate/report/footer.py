"""Where the figures come from, the table of the main ones, and what the exit code means; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gate.devices import TARGET_KIND
from gate.errors import ExitCode
from gate.metrics import SPECS, Role
from gate.records.cases import Metric, group_cases
from gate.records.run import Environment, Provenance
from gate.records.verdict import Comparison, Outcome, Status, Verdict
from gate.report.clean import ABSENT, clean_line
from gate.units import format_age, format_duration, format_noun, format_percent, format_value, join_some

SHOWN_COMMIT_CHARS = 10  # as `git log --abbrev` shows in a large repository
_MAX_NAME = 60  # characters of a device's or a library's name
MAX_ENVIRONMENTS = 3  # named; more are counted
# Libraries that models are built from; all others are in verdict.json.
_LIBRARIES = ("transformers", "diffusers", "torchvision", "timm", "numpy")
_PARTIAL = "PASS in what was judged, but not everything has a baseline: --fail-on new"
# What decides comes first; then what it is compared with.
COLUMNS: Mapping[Metric, str] = {
    metric: SPECS[metric].column
    for metric in sorted(SPECS, key=lambda metric: SPECS[metric].role is not Role.DECIDES)
    if SPECS[metric].column
}
# Marks next to the figures, so that they read the same without colour.
MARKS: Mapping[Status, tuple[str, str]] = {
    Status.REGRESSED: ("!", "regressed"),
    Status.INCONCLUSIVE: ("?", "inconclusive"),
    Status.ACCEPTED: ("a", "accepted"),
    Status.IMPROVED: ("+", "improved"),
    Status.NEW: ("*", "not judged"),
    Status.NOT_COMPARABLE: ("*", "not judged"),
}


def list_footer(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    return label_lines(
        verdict.environment,
        ("base", _describe_base(verdict)),
        ("baselines", _describe_baselines(verdict)),
        ("run", _describe_run(verdict)),
    )


def write_subject(verdict: Verdict) -> str:
    """``acme/models, branch topic: 1a2b3c4d5e against main, 2026-11-22 11:00 UTC``."""
    provenance, base = verdict.provenance, verdict.base
    where = _join((provenance.repository, f"branch {provenance.branch}" if provenance.branch else ""))
    against = (base.label or base.commit[:SHOWN_COMMIT_CHARS]) if base else "stored baselines"
    when = f", {provenance.created[:16].replace('T', ' ')} UTC" if provenance.created else ""
    commits = clean_line(f"{describe_commit(provenance)} against {against}{when}")
    return f"{where}: {commits}" if where else commits


def label_lines(environment: Environment, *more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    lines = (
        ("hardware", describe_hardware(environment)),
        ("software", describe_software(environment)),
        *more,
    )
    return tuple((label, clean_line(text)) for label, text in lines if text)


def describe_hardware(environment: Environment) -> str:
    """``cpu: AMD EPYC 7B13, 2 cores, 2 threads, avx512``.

    Without the host that compiles for a target: ``target: cuda:sm_90, as NVIDIA H100``.
    """
    if environment.device_kind == TARGET_KIND:
        board = environment.device_traits.get("board", "")
        return f"{TARGET_KIND}: {_join((environment.device_model, f'as {board}' if board else ''))}"
    parts = [environment.device_model] if environment.device_model != environment.cpu else []
    parts += [
        environment.cpu,
        format_noun(environment.cores, "core"),
        format_noun(environment.threads, "thread"),
    ]
    parts += [environment.isa, environment.clocks]
    return f"{_shorten(environment.device_kind)}: {_join(parts)}" if environment.device_kind else ""


def describe_software(environment: Environment) -> str:
    """``torch 2.13.0, python 3.11, g++ 12.2.0, transformers 5.23.0``."""
    named: Mapping[str, str] = {
        "torch": environment.torch,
        "triton": environment.triton,
        "CUDA": environment.cuda,
        "driver": environment.driver,
        "python": environment.python,
        "": environment.compiler,
        **{name: environment.libraries.get(name, "") for name in _LIBRARIES},
    }
    return _join([f"{name} {version}".strip() for name, version in named.items() if version])


def describe_commit(provenance: Provenance) -> str:
    """``1a2b3c4d5e with uncommitted changes``."""
    if not provenance.commit:
        return "unknown (not a git checkout)"
    changes = " with uncommitted changes" if provenance.dirty else ""
    return f"{_abbreviate(provenance)}{changes}"


def _describe_base(verdict: Verdict) -> str:
    base = verdict.base
    if base is None:
        return ""
    tally = verdict.tally
    counted = f"{format_noun(tally.pairs, 'pair')} of {format_noun(tally.paired_cases, 'case')}"
    pairing = f"side by side in {counted}" if tally.pairs else "no pair was measured"
    in_turn = f"{tally.pairs_in_turn} of them one process after the other" if tally.pairs_in_turn else ""
    return _join([base.label or base.commit[:SHOWN_COMMIT_CHARS], pairing, in_turn])


def _describe_baselines(verdict: Verdict) -> str:
    provenances = verdict.baseline_provenance
    if verdict.base and not verdict.uses_baselines:
        return "none used: everything was measured side by side" if verdict.tally.pairs else "none used"
    if not provenances:
        return "none apply"
    ordered = sorted(provenances, key=lambda provenance: provenance.created)
    commits = list(dict.fromkeys(_abbreviate(provenance) for provenance in reversed(ordered)))
    parts = [
        _describe_ages(ordered, verdict.provenance.created),
        f"commit {commits[0]}" if len(commits) == 1 else f"{len(commits)} commits, newest {commits[0]}",
        f"by {author}" if (author := _shorten(ordered[-1].author)) else "",
    ]
    named = [clean_line(name, _MAX_NAME) for name in verdict.baseline_environments]
    recorded = f"recorded on {join_some(named, MAX_ENVIRONMENTS, ' and ')}" if named else ""
    return ", ".join(filter(None, [_join(parts), recorded]))


def _describe_ages(ordered: Sequence[Provenance], now: str) -> str:
    newest, oldest = (format_age(provenance.created, now) for provenance in (ordered[-1], ordered[0]))
    if not newest or newest == oldest:
        return newest or "age unknown"
    return f"newest {newest}, oldest {oldest}"


def _abbreviate(provenance: Provenance) -> str:
    return clean_line(provenance.commit)[:SHOWN_COMMIT_CHARS] or "unknown"


def _describe_run(verdict: Verdict) -> str:
    cases, wall_s = format_noun(len(verdict.cases), "case"), verdict.wall_s
    whole = f"{format_noun(verdict.trials, 'trial')} of {cases} in {format_duration(wall_s)}"
    parts = [f"warm-up {format_duration(verdict.toolchain_s)}"] if verdict.toolchain_s else []
    if verdict.overhead_s > 0 and wall_s > 0:
        share = format_percent(verdict.overhead_s / wall_s, signed=False)
        parts.append(f"compile-gate itself {format_duration(verdict.overhead_s)} ({share})")
    return f"{whole}: {', '.join(parts)}" if parts else whole


def _join(parts: Sequence[str]) -> str:
    return ", ".join(short for part in parts if (short := _shorten(part)))


def _shorten(text: str) -> str:
    return clean_line(text, _MAX_NAME)


def render_exit_notice(outcome: Outcome, exit_code: ExitCode, *, is_lack_accepted: bool = False) -> str:
    """``""`` after a plain pass; ``is_lack_accepted``: somebody accepted that baselines are missing."""
    if exit_code is not ExitCode.PASS:
        return f"exit {int(exit_code)} ({_PARTIAL if outcome is Outcome.PASS else outcome.value})"
    if outcome is Outcome.PASS:
        return ""
    because = "somebody accepted that; the notes say who" if is_lack_accepted else "--fail-on lets it pass"
    return f"!! {outcome.value}, BUT EXIT 0: {because}."


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    metric: Metric
    status: Status | None = None
    value: float | None = None

    @property
    def text(self) -> str:
        return ABSENT if self.value is None else format_value(self.metric, self.value)

    @property
    def mark(self) -> str:
        return MARKS[self.status][0] if self.status and self.status in MARKS else ""


def make_figures(verdict: Verdict) -> Mapping[str, tuple[Cell, ...]]:
    comparisons = group_cases(verdict.comparisons)
    figures = {}
    for case_id in dict.fromkeys((*(case.id for case in verdict.cases), *comparisons)):
        by_metric = {comparison.metric: comparison for comparison in comparisons.get(case_id, ())}
        figures[clean_line(case_id)] = tuple(_make_cell(metric, by_metric.get(metric)) for metric in COLUMNS)
    return figures


def list_marks(figures: Iterable[Sequence[Cell]]) -> tuple[tuple[str, str], ...]:
    present = {cell.status for cells in figures for cell in cells}
    return tuple(dict.fromkeys(mark for status, mark in MARKS.items() if status in present))


def _make_cell(metric: Metric, comparison: Comparison | None) -> Cell:
    if comparison is None or comparison.candidate is None:
        return Cell(metric=metric)
    status = comparison.status if comparison.decides else None
    return Cell(metric=metric, status=status, value=comparison.candidate.centre)
