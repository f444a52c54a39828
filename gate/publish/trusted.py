"""A verdict in the repository's own name, of what somebody else's says without words.

It shows numbers and enumerations, and only cases and lines that the base commit or GitHub knows. The outcome
counts all comparisons, also those of cases that are not shown.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from gate.decide.conclude.accept import is_in_force, keep_own, list_covered, note_elsewhere
from gate.decide.conclude.coverage import Coverage, is_lack_accepted, measure_coverage
from gate.decide.conclude.exit_codes import FailOn, compute_exit_code
from gate.decide.conclude.outcome import decide_outcome
from gate.decide.conclude.suite_summary import summarize_suite
from gate.decide.explain.advice import make_headline
from gate.decide.explain.notes import list_notes, note_machine, note_tally, note_target
from gate.errors import ExitCode
from gate.fingerprint import compute_environment_id
from gate.publish.submitted import CiRun, Refusal
from gate.records.cases import Case, Policy
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import Baseline, Environment, Provenance, Run
from gate.records.shown import Shown, ShownFailure
from gate.records.verdict import BROKEN, Cause, Comparison, Outcome, PairBase, Status, Verdict

_MAX_ALIKE = 20  # causes of one case that may say the same, without their words
_BLANK = Environment(
    device_kind="",
    device_model="",
    device_uuid="",
    driver="",
    clocks="",
    cpu="",
    cores=0,
    threads=0,
    isa="",
    torch="",
    triton="",
    cuda="",
    python="",
    compiler="",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Base:
    """What the base commit says. ``rules`` are the paths of all this; a change that touches them is flagged.

    ``can_accept`` and ``can_refresh`` are whether a workflow of it does. ``gate`` is its name in acceptances.
    ``is_configured`` is false before the first gate.yml is merged.
    """

    cases: tuple[Case, ...]
    baselines: tuple[Baseline, ...] = ()
    policy: Policy = field(default_factory=lambda: Policy(thresholds={}))
    rules: tuple[str, ...] = ()
    can_accept: bool = True
    can_refresh: bool = True
    gate: str = ""
    is_configured: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class RunContext:
    """What GitHub says about a run. ``base_sha`` is on the base branch, or empty.

    ``remarks`` are notes ahead of the others. Lines in ``files``, of the measured commit, may be named.
    """

    base_sha: str = ""
    remarks: tuple[Fact, ...] = ()
    is_lack_accepted: bool = False  # the check is green without baselines, and somebody accepts that
    files: frozenset[str] = frozenset()


NO_CONTEXT = RunContext()


def make_trusted_verdict(verdict: Shown, base: Base, run: CiRun, context: RunContext = NO_CONTEXT) -> Verdict:
    ours = {case.id: case for case in base.cases}
    comparisons = tuple(map(_strip_row, (row for row in verdict.comparisons if row.case_id in ours)))
    cases = tuple(ours[case_id] for case_id in verdict.cases if case_id in ours)
    stored = [(compute_environment_id(baseline.environment), baseline) for baseline in base.baselines]
    environments = {name: baseline.environment for name, baseline in stored}
    used_ids = tuple(name for name in dict.fromkeys(verdict.baseline_environments) if name in environments)
    used = [baseline for name, baseline in stored if name in used_ids and baseline.case_id in ours]
    environment = next(filter(None, map(environments.get, verdict.environments)), _BLANK)
    provenance = Provenance(commit=run.head_sha, created=run.started, run_url=run.url)
    # Notes on how it ran are made from the tally: this run has no trials.
    shown = Run(cases=cases, environment=environment, provenance=provenance, finished=True)
    return Verdict(
        outcome=verdict.outcome,
        headline=_make_headline(verdict, comparisons, cases),
        cases=cases,
        comparisons=comparisons,
        failures=_list_failures(verdict, ours),
        causes=_list_causes(verdict, ours, context.files),
        next_steps=(),  # commands are for who has the machine
        notes=(
            *context.remarks,
            *note_unknown(verdict, cases),
            *note_target(verdict.is_target),
            *([Fact(code=Code.NO_BASELINES_HERE)] if environment is _BLANK else []),
            *list_notes(shown, comparisons, used, keep_own(base.policy, get_environment_id(verdict))),
            *note_tally(verdict.tally),
            *note_machine(verdict.machine, judged=any(row.is_judged for row in comparisons)),
        ),
        machine=verdict.machine,
        environment=environment,
        provenance=provenance,
        baseline_provenance=tuple(dict.fromkeys(baseline.provenance for baseline in used)),
        baseline_environments=used_ids,
        base=_make_base(verdict, context),
        tally=verdict.tally,
        summary=summarize_suite(cases, comparisons),
        trials=verdict.trials,
        wall_s=verdict.wall_s,
        toolchain_s=verdict.toolchain_s,
        overhead_s=verdict.overhead_s,
    )


def get_environment_id(verdict: Shown) -> str:
    """Empty where the file has none."""
    return next(iter(verdict.environments), "")


def _strip_row(row: Comparison) -> Comparison:
    return replace(row, remarks=tuple(map(_strip, row.remarks)))


def _strip(fact: Fact) -> Fact:
    return Fact(code=fact.code, numbers=fact.numbers, metrics=fact.metrics)


def _make_base(verdict: Shown, context: RunContext) -> PairBase | None:
    base = verdict.base
    return PairBase(commit=context.base_sha, other_stack=base.other_stack) if base else None


def _list_failures(verdict: Shown, ours: Collection[str]) -> tuple[ShownFailure, ...]:
    return tuple(_name_role(failure) for failure in verdict.failures if failure.case_id in ours)


def _name_role(failure: ShownFailure) -> ShownFailure:
    role = {name: words for name, words in failure.fact.names.items() if name == "role"}
    return replace(failure, fact=replace(_strip(failure.fact), names=role))


def _list_causes(verdict: Shown, ours: Mapping[str, Case], files: Collection[str]) -> tuple[Cause, ...]:
    """Without words some are the same. A line is shown if the commit has its file."""
    listed: list[Cause] = []
    for cause in verdict.causes:
        if cause.case_id in ours and cause.fact.code is not Code.MORE:
            location = cause.fact.name("location")
            names = name_words(location=location) if location.rpartition(":")[0] in files else {}
            left = replace(cause, fact=replace(_strip(cause.fact), names=names))
            listed += [left] if left not in listed[-_MAX_ALIKE:] else []
    return tuple(listed)


def _make_headline(
    verdict: Shown, comparisons: tuple[Comparison, ...], cases: tuple[Case, ...]
) -> tuple[Fact, ...]:
    """The headline of a regression names a case, so only a known one."""
    finished = verdict.tally.finished
    if verdict.outcome is not Outcome.REGRESSION:
        return make_headline(verdict.outcome, verdict.comparisons, verdict.cases, finished=finished)
    if decide_outcome(comparisons, finished=finished) is Outcome.REGRESSION:
        return make_headline(verdict.outcome, comparisons, cases)
    unknown = len(verdict.cases) - len(cases)
    return (Fact(code=Code.REGRESSED_UNSHOWN, numbers={"cases": unknown}),)


def note_unknown(verdict: Shown, cases: tuple[Case, ...]) -> tuple[Fact, ...]:
    """Note the cases that are not among ``cases``, and so are not shown."""
    unknown = len(verdict.cases) - len(cases)
    if not unknown:
        return ()
    shown = {case.id for case in cases}
    rows = [row for row in verdict.comparisons if row.decides and row.case_id not in shown]
    numbers = {
        "cases": unknown,
        "comparisons": len(rows),
        "regressed": sum(row.status is Status.REGRESSED for row in rows),
        "failed": sum(row.status in BROKEN for row in rows),
    }
    return (Fact(code=Code.CASES_UNSHOWN, numbers=numbers),)


def needs_acceptance(verdict: Shown) -> bool:
    accepted = any(row.decides and row.status is Status.ACCEPTED for row in verdict.comparisons)
    return accepted or _lacks_baselines(verdict)


def _lacks_baselines(verdict: Shown) -> bool:
    is_whole = measure_coverage(verdict.comparisons).is_whole
    return verdict.outcome is Outcome.NOTHING_COMPARED or (verdict.outcome is Outcome.PASS and not is_whole)


def note_accepted(policy: Policy, verdict: Shown) -> tuple[list[Fact], bool]:
    """Note which of a commit's acceptances a verdict counts, without reasons, which are foreign text.

    Also return whether somebody accepts that baselines are missing. This decides only whether a green check
    that compared nothing may be published as one.
    """
    policy = keep_own(policy, get_environment_id(verdict))
    notes = note_elsewhere(policy)
    acceptances = [entry for entry in policy.acceptances if entry.commit and is_in_force(entry, policy)]
    is_lacking = _lacks_baselines(verdict) and is_lack_accepted(verdict.comparisons, policy)
    for author in dict.fromkeys(entry.author for entry in acceptances):
        theirs = [entry for entry in acceptances if entry.author == author]
        names = name_words(author=author, expires=min(entry.expires for entry in theirs))
        if covered := list_covered(verdict.comparisons, theirs, policy):
            notes.append(Fact(code=Code.ACCEPTED_HERE, numbers={"changes": len(covered)}, names=names))
        if is_lacking and any(entry.metric is None for entry in theirs):
            notes.append(Fact(code=Code.LACK_ACCEPTED_HERE, names=names))
    return notes, is_lacking


@dataclass(frozen=True, kw_only=True, slots=True)
class TrustedResult:
    """A trusted verdict, or why there is none.

    ``counts``, ``case_count`` and ``coverage`` count also what is not shown. ``preface`` is a paragraph of
    Markdown.
    """

    run: CiRun
    verdict: Verdict | None = None
    counts: tuple[tuple[Status, int], ...] = ()
    case_count: int = 0
    coverage: Coverage = field(default_factory=Coverage)
    refusal: Refusal = Refusal.NO_ARTIFACT  # why, where there is none
    preface: str = ""
    title: str = ""  # of its issue: what was upgraded
    steps: tuple[str, ...] = ()  # in Markdown, what to do next where it is no pull request
    fail_on: FailOn = FailOn.REGRESSION
    base: Base = field(default_factory=lambda: Base(cases=()))
    context: RunContext = NO_CONTEXT
    gate: str = ""  # its key, where the repository has several

    @property
    def outcome(self) -> Outcome:
        return self.verdict.outcome if self.verdict else Outcome.INCOMPLETE

    @property
    def is_failing(self) -> bool:
        """The change that adds the rules need not compare anything: its check passes."""
        is_first = not self.base.is_configured and self.outcome is Outcome.NOTHING_COMPARED
        if is_first and self.run.conclusion == "success":
            return False
        accepted = self.context.is_lack_accepted
        code = compute_exit_code(self.outcome, self.fail_on, self.coverage, is_lack_accepted=accepted)
        return code is not ExitCode.PASS

    @property
    def is_plain(self) -> bool:
        """A pass that leaves nothing to report. An upgrade runs one code: what is not judged did not run."""
        is_whole = not self.preface or self.coverage.judged_cases == self.coverage.cases
        is_pass = self.outcome is Outcome.PASS and not self.is_failing
        return is_pass and is_whole and not self.has_other_trouble

    @property
    def has_other_trouble(self) -> bool:
        """Whether the run failed although its verdict lets it pass."""
        return not self.is_failing and self.run.conclusion not in {"success", ""}
