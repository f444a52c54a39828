"""A verdict in the repository's own name: what is kept of somebody else's, and what it comes to."""

from dataclasses import replace

import pytest
import records
from records import (
    CASES,
    ENVIRONMENT_ID,
    GREEN,
    RUN,
    SHA,
    UNSTORED,
    make_base,
    make_comparison,
    make_failing,
    make_passing,
    make_regressed,
    make_rows,
    make_unchanged,
    make_verdict,
)

from gate.decide.conclude.coverage import Coverage
from gate.decide.conclude.exit_codes import FailOn
from gate.publish.body import list_comment_steps
from gate.publish.results import make_finding
from gate.publish.shown import make_shown
from gate.publish.submitted import CiRun
from gate.publish.trusted import (
    Base,
    RunContext,
    TrustedResult,
    get_environment_id,
    make_trusted_verdict,
    needs_acceptance,
    note_accepted,
    note_unknown,
)
from gate.records.cases import Case, Metric, Policy
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.shown import ShownBase, ShownCause
from gate.records.verdict import (
    Cause,
    Comparison,
    MachineShift,
    Outcome,
    PairBase,
    Reason,
    Status,
    Tally,
    Verdict,
)
from tests.hosts import CPU_HOST, CUDA_HOST
from tests.make import make_baseline, make_failure

LATENCY = Metric.COMPILED_LATENCY
SLOWER = make_comparison(CASES[0], LATENCY, Status.ACCEPTED, Reason.ACCEPTED, (0.010, 0.0108))
ACCEPTED = make_verdict(SLOWER, *make_unchanged(CASES[1]))
NEW = make_verdict(*(make_comparison(case, LATENCY, Status.NEW, Reason.NO_BASELINE) for case in CASES))
ENTRY = replace(records.ENTRY, allowance=0.1)
EVIL = Case(id="evil/test", model="evil", factory="evil:run")


def trust(verdict: Verdict, base: Base | None = None, context: RunContext | None = None) -> Verdict:
    """What is published of a verdict, by a base that knows the three cases."""
    return make_trusted_verdict(make_shown(verdict), base or make_base(), RUN, context or RunContext())


def make_mixed() -> Verdict:
    """A verdict of two cases that the base knows, and of one that it does not know, which got worse."""
    rows = (*make_unchanged(CASES[0]), *make_regressed(EVIL), *make_unchanged(CASES[2]))
    failures = (make_failure(EVIL.id), make_failure(CASES[2].id))
    causes = tuple(
        Cause(case_id=case.id, fact=Fact(code=Code.RECOMPILED, numbers={"count": 1}))
        for case in (EVIL, CASES[0])
    )
    return make_verdict(*rows, cases=(CASES[2], EVIL, CASES[0]), failures=failures, causes=causes)


def test_only_cases_of_the_base_are_shown() -> None:
    """Their rows, failures and causes too, in the order of the run; the outcome counts all."""
    shown = trust(make_mixed())

    assert shown.outcome is Outcome.REGRESSION
    assert shown.cases == (CASES[2], CASES[0])
    assert [row.case_id for row in shown.comparisons] == [CASES[0].id] * 2 + [CASES[2].id] * 2
    assert [failure.case_id for failure in shown.failures] == [CASES[2].id]
    assert [cause.case_id for cause in shown.causes] == [CASES[0].id]


@pytest.mark.parametrize(
    ("verdict", "fact"),
    [
        (make_mixed(), Fact(code=Code.REGRESSED_UNSHOWN, numbers={"cases": 1})),
        (
            make_failing(),
            Fact(code=Code.REGRESSED_CASE, numbers={"metrics": 1}, cases=(CASES[0].id,), metrics=(LATENCY,)),
        ),
        (
            make_verdict(*make_mixed().comparisons, *make_regressed(CASES[1]), cases=(*CASES, EVIL)),
            Fact(code=Code.REGRESSED_CASE, numbers={"metrics": 1}, cases=(CASES[1].id,), metrics=(LATENCY,)),
        ),
        (NEW, Fact(code=Code.NO_BASELINE_APPLIES, numbers={"cases": 3, "quarantined": 0})),
        (
            make_verdict(*NEW.comparisons, cases=(*CASES, EVIL)),
            Fact(code=Code.NO_BASELINE_APPLIES, numbers={"cases": 4, "quarantined": 0}),
        ),
    ],
    ids=["unknown worse", "known worse", "both worse", "nothing compared", "one of them unknown"],
)
def test_a_headline_names_a_known_case_and_counts_them_all(verdict: Verdict, fact: Fact) -> None:
    """What the measured side wrote above its own verdict is not repeated."""
    assert trust(verdict).headline == (fact,)


def test_a_run_that_was_stopped_is_headed_so() -> None:
    """Nobody takes what came of it for all that was planned."""
    stopped = make_passing(outcome=Outcome.INCOMPLETE, tally=Tally(finished=False))

    assert [fact.code for fact in trust(stopped).headline] == [Code.STOPPED]


@pytest.mark.parametrize(
    ("verdict", "codes"),
    [
        (make_passing(), []),
        (make_mixed(), [Code.CASES_UNSHOWN]),
        (make_passing(environment=CPU_HOST), [Code.NO_BASELINES_HERE]),
        (make_passing(tally=Tally(finished=False)), [Code.STOPPED]),
        (make_passing(machine=MachineShift(canary=0.05, suite=0.04, known=True)), [Code.MACHINE_CHANGED]),
        (NEW, [Code.NO_BASELINE]),
        (
            make_verdict(*NEW.comparisons, machine=MachineShift(canary=0.05, suite=0.04, known=True)),
            [Code.NO_BASELINE],
        ),
        (
            make_verdict(
                *NEW.comparisons[:1],
                *make_unchanged(CASES[1]),
                machine=MachineShift(canary=0.05, suite=0.04, known=True),
            ),
            [Code.NO_BASELINE, Code.MACHINE_CHANGED],
        ),
    ],
    ids=[
        *("plain", "unknown", "another machine", "stopped"),
        *("a slower machine", "new", "new on a slower one", "partly new on a slower one"),
    ],
)
def test_what_limits_a_verdict_is_noted_once_after_what_github_says(
    verdict: Verdict, codes: list[Code]
) -> None:
    """None of these words are of whoever measured."""
    remark = Fact(code=Code.TOUCHES_RULES, names={"rules": ("gate.yml (1 file)",)})

    notes = trust(verdict, context=RunContext(remarks=(remark,))).notes

    assert [note.code for note in notes] == [Code.TOUCHES_RULES, *codes]


def test_only_baselines_of_shown_cases_and_named_machines_count_as_used() -> None:
    """Old ones are noted; the machine is the first of the verdict's that the base has baselines of."""
    old = make_base().baselines[0].provenance
    young = replace(old, commit="e" * 40, created="2026-10-31T08:00:00+00:00")
    elsewhere = make_baseline(CASES[0].id, {}, environment=CPU_HOST, provenance=old)
    stray = make_baseline("gone/test", {}, environment=CUDA_HOST, provenance=old)
    used = [replace(baseline, provenance=young) for baseline in make_base().baselines]
    base = replace(make_base(), baselines=(elsewhere, stray, *used))
    base = replace(base, policy=Policy(thresholds={}, today="2026-11-20"))

    verdict = trust(make_passing(), base)

    assert (verdict.environment, verdict.baseline_environments) == (CUDA_HOST, (ENVIRONMENT_ID,))
    assert verdict.baseline_provenance == (young,)
    assert verdict.notes == ()
    all_old = replace(base, baselines=tuple(replace(baseline, provenance=old) for baseline in used))
    (note,) = trust(make_passing(), all_old).notes
    assert (note.code, note.numbers) == (Code.BASELINES_OLD, {"baselines": 3, "days": 30, "oldest": 40})


def test_nothing_is_known_of_a_machine_without_baselines() -> None:
    """Whoever measured could have made one up."""
    environment = trust(make_passing(environment=CPU_HOST)).environment

    assert {getattr(environment, name) for name in ("device_kind", "device_model", "cpu", "torch")} == {""}
    assert (environment.cores, environment.threads) == (0, 0)
    assert trust(make_passing(baseline_environments=("cpu-torch2.13",))).baseline_environments == ()


@pytest.mark.parametrize(("environments", "expected"), [(("a", "b"), "a"), ((), "")])
def test_a_verdicts_machine_is_the_first_that_it_names(environments: tuple[str, ...], expected: str) -> None:
    """A file may name none."""
    assert get_environment_id(replace(make_shown(make_passing()), environments=environments)) == expected


@pytest.mark.parametrize("other_stack", [True, False])
def test_the_base_of_pairs_is_what_github_says(other_stack: bool) -> None:
    """A commit that only the artifact names is not shown."""
    shown = replace(make_shown(make_passing()), base=ShownBase(commit="e" * 40, other_stack=other_stack))

    verdict = make_trusted_verdict(shown, make_base(), RUN, RunContext(base_sha="b" * 40))

    assert verdict.base == PairBase(commit="b" * 40, other_stack=other_stack)
    assert make_trusted_verdict(replace(shown, base=None), make_base(), RUN).base is None


@pytest.mark.parametrize(
    ("location", "expected"),
    [("model.py:7", {"location": ("model.py:7",)}), ("evil.py:7", {}), ("model.py", {}), ("", {})],
)
def test_a_line_is_shown_of_a_file_that_the_commit_has(location: str, expected: dict[str, object]) -> None:
    """Other words of a cause are not; a count of more causes is not a cause."""
    fact = Fact(code=Code.GRAPH_BREAK, names=name_words(location=location, reason="evil"))
    more = Fact(code=Code.MORE, numbers={"causes": 2})
    causes = tuple(ShownCause(case_id=CASES[0].id, fact=fact) for fact in (fact, more))
    shown = replace(make_shown(make_failing()), causes=causes)

    listed = make_trusted_verdict(shown, make_base(), RUN, RunContext(files=frozenset({"model.py"}))).causes

    assert [(cause.fact.code, cause.fact.names) for cause in listed] == [(Code.GRAPH_BREAK, expected)]


def test_of_a_failure_the_processs_role_is_the_only_word() -> None:
    """It is one of ours; any other is the measured side's."""
    shown = make_shown(make_failing(failures=(make_failure(CASES[0].id),)))
    fact = Fact(
        code=Code.NO_RESULT, numbers={"status": -11}, names={"role": ("warm",), "shortage": ("evil",)}
    )
    shown = replace(shown, failures=tuple(replace(failure, fact=fact) for failure in shown.failures))

    (failure,) = make_trusted_verdict(shown, make_base(), RUN).failures

    assert failure.fact == Fact(code=Code.NO_RESULT, numbers={"status": -11}, names={"role": ("warm",)})


def test_rows_of_unknown_cases_that_decide_are_counted() -> None:
    """How many got worse or did not come back is the most that is said of them."""
    rows = make_regressed(EVIL)
    lost = replace(rows[0], status=Status.FAILED, reason=Reason.CASE_FAILED, metric=Metric.DRIFT)
    apart = replace(rows[0], decides=False, metric=Metric.EAGER_LATENCY)
    missing = [
        replace(lost, status=Status.MISSING, metric=metric)
        for metric in (Metric.GRAPH_BREAKS, Metric.RECOMPILES)
    ]
    verdict = make_verdict(*make_regressed(CASES[0]), *rows, lost, *missing, apart, cases=(CASES[0], EVIL))

    (note,) = note_unknown(make_shown(verdict), (CASES[0],))

    assert note.code is Code.CASES_UNSHOWN
    assert note.numbers == {"cases": 1, "comparisons": 5, "regressed": 1, "failed": 3}
    assert note_unknown(make_shown(make_failing()), CASES) == ()


def test_without_a_verdict_a_run_fails_as_incomplete() -> None:
    """It is no plain result, and its trouble has a name of its own."""
    finding = TrustedResult(run=RUN)

    assert (finding.outcome, finding.is_failing, finding.is_plain) == (Outcome.INCOMPLETE, True, False)
    assert (finding.case_count, finding.coverage) == (0, Coverage())


@pytest.mark.parametrize(
    ("outcome", "fail_on", "judged", "is_accepted", "is_failing"),
    [
        (Outcome.PASS, FailOn.REGRESSION, 1, False, False),
        (Outcome.PASS, FailOn.NEW, 1, False, True),
        (Outcome.PASS, FailOn.NEW, 1, True, False),
        (Outcome.PASS, FailOn.NEW, 2, False, False),
        (Outcome.INCONCLUSIVE, FailOn.REGRESSION, 1, False, False),
        (Outcome.INCONCLUSIVE, FailOn.INCONCLUSIVE, 1, False, True),
        (Outcome.NOTHING_COMPARED, FailOn.REGRESSION, 0, False, True),
        (Outcome.NOTHING_COMPARED, FailOn.REGRESSION, 0, True, False),
        (Outcome.REGRESSION, FailOn.REGRESSION, 2, True, True),
        (Outcome.REGRESSION, FailOn.NEVER, 2, False, False),
    ],
)
def test_a_result_fails_as_the_bases_setting_says(
    outcome: Outcome, fail_on: FailOn, judged: int, is_accepted: bool, is_failing: bool
) -> None:
    """A lack of baselines that somebody accepts fails nothing."""
    finding = TrustedResult(
        run=GREEN,
        verdict=make_passing(outcome=outcome),
        coverage=Coverage(comparisons=2, judged=judged, cases=2, judged_cases=judged),
        fail_on=fail_on,
        context=RunContext(is_lack_accepted=is_accepted),
    )

    assert finding.is_failing is is_failing


@pytest.mark.parametrize(
    ("outcome", "fail_on", "preface", "judged", "conclusion", "is_plain"),
    [
        (Outcome.PASS, FailOn.REGRESSION, "", 1, "success", True),
        (Outcome.PASS, FailOn.REGRESSION, "", 1, "", True),
        (Outcome.PASS, FailOn.REGRESSION, "of an upgrade", 2, "success", True),
        (Outcome.PASS, FailOn.REGRESSION, "of an upgrade", 1, "success", False),
        (Outcome.PASS, FailOn.REGRESSION, "", 1, "failure", False),
        (Outcome.PASS, FailOn.NEW, "", 1, "success", False),
        (Outcome.INCONCLUSIVE, FailOn.REGRESSION, "", 1, "success", False),
        (Outcome.REGRESSION, FailOn.NEVER, "", 1, "success", False),
    ],
)
def test_a_plain_result_is_a_pass_that_leaves_nothing_to_report(
    outcome: Outcome, fail_on: FailOn, preface: str, judged: int, conclusion: str, is_plain: bool
) -> None:
    """An upgrade must have judged every case for that, and the run must have ended well."""
    finding = TrustedResult(
        run=replace(RUN, conclusion=conclusion),
        verdict=make_passing(outcome=outcome),
        coverage=Coverage(comparisons=2, judged=judged, cases=2, judged_cases=judged),
        fail_on=fail_on,
        preface=preface,
    )

    assert finding.is_plain is is_plain


@pytest.mark.parametrize(
    ("outcome", "conclusion", "has_trouble"),
    [
        (Outcome.PASS, "success", False),
        (Outcome.PASS, "", False),
        (Outcome.PASS, "failure", True),
        (Outcome.PASS, "cancelled", True),
        (Outcome.REGRESSION, "failure", False),
        (Outcome.REGRESSION, "success", False),
    ],
)
def test_a_run_that_failed_for_nothing_in_its_verdict_has_other_trouble(
    outcome: Outcome, conclusion: str, has_trouble: bool
) -> None:
    """One that is still running has not failed."""
    run = replace(RUN, conclusion=conclusion)

    assert TrustedResult(run=run, verdict=make_passing(outcome=outcome)).has_other_trouble is has_trouble


def test_a_base_of_which_nothing_else_is_said_has_every_workflow() -> None:
    """So a regression can be accepted by a comment, and missing baselines be recorded by one."""
    base = Base(cases=CASES)
    regressed, new = (make_finding(make_shown(verdict), base, RUN) for verdict in (make_failing(), NEW))

    assert "/accept-regression" in list_comment_steps(regressed)[-1]
    assert "/refresh-baselines" in list_comment_steps(new)[-1]
    assert new.is_failing  # it is configured, too


@pytest.mark.parametrize(
    ("rows", "is_whole_lack", "expected"),
    [
        (make_rows(**UNSTORED), True, ["2026-11-15"]),
        (make_rows(**UNSTORED), False, []),
        (make_rows(), True, []),
        ((*make_rows(**UNSTORED)[:2], *make_regressed(CASES[1]), *make_unchanged(CASES[2])), True, []),
    ],
    ids=["all new", "accepted of one", "none is new", "worse"],
)
def test_who_accepts_that_baselines_are_missing_is_noted_where_that_makes_it_green(
    rows: tuple[Comparison, ...], is_whole_lack: bool, expected: list[str]
) -> None:
    """By the first day on which one of the acceptances ends; a regression stays one."""
    lack = [replace(ENTRY, case=case.id, metric=None, allowance=0.0, commit=SHA) for case in CASES]
    others = [replace(ENTRY, author=author, commit=SHA) for author in ("ada", "bob")]
    entries = (replace(lack[0], expires="2026-11-20"), *(lack[1:] if is_whole_lack else ()), *others)
    policy = Policy(thresholds={}, acceptances=entries, commits=(SHA,), today="2026-11-01")

    notes, is_lacking = note_accepted(policy, make_shown(make_verdict(*rows)))

    assert is_lacking is bool(expected)
    accepted = [note for note in notes if note.code is Code.LACK_ACCEPTED_HERE]
    assert [note.names for note in accepted] == [name_words(author="ada", expires=day) for day in expected]


def test_each_author_is_noted_with_as_many_changes_as_theirs_cover() -> None:
    """One whose acceptances are of no row is not, nor one whose time is over."""
    other = replace(ENTRY, author="bob", metric=Metric.DRIFT)
    late = replace(ENTRY, author="eve", expires="2026-10-31")
    entries = tuple(replace(entry, commit=SHA) for entry in (other, late, ENTRY))
    policy = Policy(thresholds={}, acceptances=entries, commits=(SHA,), today="2026-11-01")

    notes, is_lacking = note_accepted(policy, make_shown(ACCEPTED))

    names = name_words(author="ada", expires="2026-11-15")
    assert notes == [Fact(code=Code.ACCEPTED_HERE, numbers={"changes": 1}, names=names)]
    assert not is_lacking


@pytest.mark.parametrize(("commit", "noted"), [(SHA, 1), ("", 0)])
def test_only_an_acceptance_of_the_commit_is_somebodys(commit: str, noted: int) -> None:
    """What stands in the repository was reviewed with it."""
    policy = Policy(thresholds={}, acceptances=(replace(ENTRY, commit=commit),), today="2026-11-01")
    notes, _ = note_accepted(policy, make_shown(ACCEPTED))
    assert len(notes) == noted


@pytest.mark.parametrize(
    ("verdict", "needed"),
    [
        (make_passing(), False),
        (make_failing(), False),
        (ACCEPTED, True),
        (make_verdict(replace(SLOWER, decides=False), *make_unchanged(CASES[1])), False),
        (NEW, True),
        (make_verdict(*NEW.comparisons[:1], *make_unchanged(CASES[1])), True),
        (make_verdict(*NEW.comparisons[:1], *make_regressed(CASES[1])), False),
    ],
    ids=["whole", "worse", "accepted", "accepted, but decides nothing", "new", "partly new", "new and worse"],
)
def test_an_acceptance_is_looked_for_where_one_can_make_the_check_green(
    verdict: Verdict, needed: bool
) -> None:
    """That is where a deciding row is accepted, or baselines are missing and nothing got worse."""
    assert needs_acceptance(make_shown(verdict)) is needed


@pytest.mark.parametrize(
    ("verdict", "run", "is_failing"),
    [
        (NEW, GREEN, False),
        (NEW, RUN, True),
        (make_failing(), GREEN, True),
        (make_passing(), GREEN, False),
    ],
    ids=["nothing compared", "nothing compared and red", "worse", "passed"],
)
def test_the_first_rules_excuse_only_that_nothing_was_compared(
    verdict: Verdict, run: CiRun, is_failing: bool
) -> None:
    """A regression fails the check although the base has no rules and its run ended green."""
    base = replace(make_base(), is_configured=False)

    assert make_finding(make_shown(verdict), base, run).is_failing is is_failing


@pytest.mark.parametrize(("between", "is_listed_again"), [(19, False), (20, True)])
def test_a_cause_is_listed_once_among_twenty(between: int, is_listed_again: bool) -> None:
    """Without words causes may be alike; one that is as another of the last twenty is left out."""
    counts = (0, *range(1, between + 1), 0)
    causes = tuple(
        ShownCause(case_id=CASES[0].id, fact=Fact(code=Code.GRAPH_BREAK, numbers={"count": count}))
        for count in counts
    )
    shown = replace(make_shown(make_failing()), causes=causes)

    listed = make_trusted_verdict(shown, make_base(), RUN).causes

    assert len(listed) == between + 1 + is_listed_again
