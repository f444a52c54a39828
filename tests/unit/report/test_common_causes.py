"""Causes and notes of many cases are shown once, above the cases."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from gate.decide.explain.advice import make_headline
from gate.records.cases import Metric, Threshold
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.verdict import Cause, Comparison, Outcome, PairBase, Reason, Status, Verdict
from gate.report.content import make_report
from gate.report.text import render_text
from tests.make import make_change, make_row

SAME = Fact(code=Code.CODE_SAME)
MAYBE_SAME = (
    "Possible cause: the generated code is the same: look at the machine, or at Python code outside the"
    " graphs"
)
SAME_TOLD = "The generated code is the same: look at the machine, or at Python code outside the graphs"
MACHINE = {"canary": -0.284, "suite": -0.134}
MACHINE_TOLD = (
    "The machine changed since the baselines were recorded; fixed test programs -28.4 % (faster);"
    " eager over all cases -13.4 % (faster)."
)
MAYBE = make_change(0.06, 0.08, detectable=0.09)


def compare(case_id: str, status: Status, metric: Metric = Metric.COMPILED_LATENCY) -> Comparison:
    return make_row(case_id, metric, status, reason=Reason.UNSETTLED, change=MAYBE)


def explain(case_id: str, fact: Fact, weight: float = 0.5) -> Cause:
    return Cause(case_id=case_id, fact=fact, weight=weight)


@pytest.fixture
def empty(verdicts: Mapping[str, Verdict]) -> Verdict:
    return replace(verdicts["pass"], cases=(), comparisons=(), notes=())


def make_cases(verdict: Verdict, statuses: str, fact: Fact, *, explained: str = "") -> Verdict:
    """A case for each letter (r: regressed, i: inconclusive), all or some with the cause."""
    named = {"r": Status.REGRESSED, "i": Status.INCONCLUSIVE}
    rows = tuple(compare(f"c{index}", named[letter]) for index, letter in enumerate(statuses))
    causes = tuple(explain(row.case_id, fact) for row in rows if not explained or row.case_id in explained)
    return replace(verdict, comparisons=rows, causes=causes)


def test_a_cause_of_four_cases_stands_above(empty: Verdict) -> None:
    """The cause is shown with its number of cases."""
    report = make_report(make_cases(empty, "iiii", SAME))

    assert report.causes == (f"{MAYBE_SAME} (all 4 cases).",)
    assert [block.causes for block in report.blocks] == [(f"{MAYBE_SAME}.",)]


@pytest.mark.parametrize(("centre", "expected"), [(0.06, (f"{MAYBE_SAME} (c0).",)), (-0.06, ())])
def test_the_likely_cause_of_what_looks_worst_stands_above(
    empty: Verdict, centre: float, expected: tuple[str, ...]
) -> None:
    """An inconclusive report shows the cause of the case that looks worst."""
    verdict = replace(make_cases(empty, "ii", SAME), outcome=Outcome.INCONCLUSIVE)
    change, limit = replace(MAYBE, centre=centre), Threshold(relative=0.05, absolute=0.0)
    rows = tuple(replace(row, change=change, threshold=limit) for row in verdict.comparisons)

    assert make_report(replace(verdict, comparisons=rows)).causes == expected


def test_time_that_was_up_stands_above(empty: Verdict) -> None:
    """Elapsed time is shown as the reason, and not again as a note."""
    up = Fact(code=Code.TIME_UP, cases=("c0",))
    report = make_report(replace(make_cases(empty, "i", SAME), notes=(up,)))

    assert report.causes == (
        "The time of --minutes was up before c0 could be settled: allow more, or continue with --resume.",
    )
    assert report.notes == ()


@pytest.mark.parametrize(
    ("outcome", "status", "reason"),
    [
        (Outcome.INCOMPLETE, Status.MISSING, Reason.NOT_RUN),
        (Outcome.INCONCLUSIVE, Status.INCONCLUSIVE, Reason.UNSETTLED),
    ],
)
def test_time_that_was_up_is_the_headlines_reason(
    empty: Verdict, outcome: Outcome, status: Status, reason: Reason
) -> None:
    """Four cases got too few pairs: --minutes is the reason, with one command for all."""
    rows = tuple(
        replace(compare(f"c{number}", status), reason=reason, change=None, pairs=status is not Status.MISSING)
        for number in range(4)
    )
    up = Fact(code=Code.TIME_UP, cases=tuple(row.case_id for row in rows))
    headline = make_headline(outcome, rows, ())
    base = PairBase(commit="1a2b3c4")
    report = make_report(
        replace(empty, outcome=outcome, headline=headline, comparisons=rows, notes=(up,), base=base)
    )

    beginning = "The time of --minutes was up before c0, c1, c2 and 1 more could be settled"
    assert report.why.startswith(beginning)
    assert report.causes == ()
    if status is Status.MISSING:
        (block,) = report.blocks
        assert block.command.endswith("--select c0,c1,c2,c3")


def test_causes_of_three_cases_stay_with_them(empty: Verdict) -> None:
    report = make_report(make_cases(empty, "iii", SAME))

    assert report.causes == ()
    assert [block.causes for block in report.blocks] == [(f"{MAYBE_SAME}.",)] * 3


def test_the_machine_is_mentioned_once(empty: Verdict) -> None:
    """One note describes the machine, and no case repeats it."""
    cause = Fact(code=Code.MACHINE_CHANGED, numbers=MACHINE)
    verdict = make_cases(empty, "ri", cause)
    report = make_report(replace(verdict, notes=(Fact(code=Code.MACHINE_CHANGED, numbers=MACHINE),)))

    assert (report.why, report.causes, report.notes) == (MACHINE_TOLD, (), ())
    assert [block.causes for block in report.blocks] == [(), ()]
    assert "machine" not in dict(report.scope)


def test_a_note_on_the_machine_is_no_cause_of_what_it_does_not_explain(empty: Verdict) -> None:
    """What regressed in pairs is not explained by the machine."""
    verdict = make_cases(empty, "r", SAME)
    report = make_report(replace(verdict, notes=(Fact(code=Code.MACHINE_CHANGED, numbers=MACHINE),)))

    assert (report.causes, report.notes) == ((), (MACHINE_TOLD,))
    assert "machine" not in dict(report.scope)
    assert [block.causes for block in report.blocks] == [(f"{SAME_TOLD}.",)]


def test_a_note_on_the_machine_stays_one_where_nothing_moved(empty: Verdict) -> None:
    """Without a change to explain it stays a note."""
    report = make_report(replace(empty, notes=(Fact(code=Code.MACHINE_CHANGED, numbers=MACHINE),)))

    assert (report.causes, report.notes) == ((), (MACHINE_TOLD,))


@pytest.mark.parametrize(("statuses", "expected"), [("r", 1), ("i", 0)])
def test_a_detail_is_shown_without_a_better_cause(empty: Verdict, statuses: str, expected: int) -> None:
    """That no kernel changed is shown only for a regression without another cause."""
    verdict = make_cases(empty, statuses, SAME)
    detail = explain("c0", Fact(code=Code.KERNELS_STEADY), weight=0.05)

    (alone,) = make_report(replace(verdict, causes=(detail,))).blocks
    (both,) = make_report(replace(verdict, causes=(*verdict.causes, detail))).blocks
    (whole,) = make_report(replace(verdict, causes=(*verdict.causes, detail)), everything=True).blocks

    assert (len(alone.causes), both.causes, len(whole.causes)) == (
        expected,
        (f"{SAME_TOLD if statuses == 'r' else MAYBE_SAME}.",),
        2,
    )


def test_reasons_for_inconclusive_are_counted(empty: Verdict) -> None:
    """Three of five cases may be noise, two have slower eager: one row counts both."""
    rows = [
        replace(
            compare(f"c{number}", Status.INCONCLUSIVE, metric),
            reason=Reason.UNSETTLED if number < 3 else Reason.SHARED_SHIFT,
            change=replace(MAYBE, centre=0.06 + 0.01 * ((number + index) % 2)),
        )
        for number in range(5)
        for index, metric in enumerate((Metric.COMPILED_LATENCY, Metric.COLD_COMPILE_TIME))
    ]
    (block,) = make_report(replace(empty, comparisons=tuple(rows))).blocks

    sentence = (
        "Inconclusive: it looks changed, but noise could explain it (3 cases);"
        " eager got slower too, in the same processes, so the machine may be the cause (2 cases)."
    )
    assert [row.sentence for row in block.rows] == [sentence, sentence]
    assert {row.metric for row in block.rows} == {"compiled latency", "cold compile time"}
    assert "    cold compile time: c0 +7.0 %, c1 +6.0 %," in render_text(
        replace(empty, comparisons=tuple(rows))
    )


def test_one_step_fixes_all_that_got_worse(empty: Verdict) -> None:
    """The first step has all cases in its command; acceptances follow."""
    shared = {"numbers": {"commands": 1, "allowance": 0.08}, "metrics": (Metric.COMPILED_LATENCY,)}
    steps = tuple(
        Fact(code=Code.ACCEPT, cases=(name,), names={"expires": ("2026-04-19",)}, **shared)  # type: ignore[arg-type]
        for name in ("c0", "c1")
    )
    verdict = replace(make_cases(empty, "rr", SAME), next_steps=(*steps, Fact(code=Code.FIX, cases=("c1",))))

    first, *others = make_report(verdict).next_steps

    assert first.text == "Fix what got worse and measure it again:"
    assert first.command == "compile-gate check --select c0,c1"
    assert [step.text for step in others] == [
        "Or accept what got worse in c0 until a date:",
        "Or accept what got worse in c1 until a date:",
    ]


@pytest.mark.parametrize(
    ("more", "ending"),
    [
        (1, " (1 more metric of it is inconclusive and may follow)"),
        (2, " (2 more metrics of it are inconclusive and may follow)"),
    ],
)
def test_an_acceptance_says_what_it_does_not_cover(empty: Verdict, more: int, ending: str) -> None:
    """The step names what is still open of the same case."""
    step = Fact(
        code=Code.ACCEPT,
        numbers={"commands": 1, "allowance": 0.08},
        cases=("c0",),
        metrics=(Metric.COMPILED_LATENCY,),
        names={"expires": ("2026-04-19",)},
    )
    verdict = make_cases(empty, "ri", SAME)
    open_rows = [
        compare("c0", Status.INCONCLUSIVE, metric)
        for metric in (Metric.COLD_COMPILE_TIME, Metric.PEAK_MEMORY)[:more]
    ]
    rows = (*verdict.comparisons, *open_rows)

    _, accept = make_report(replace(verdict, comparisons=rows, next_steps=(step,))).next_steps

    assert accept.text == f"Or accept what got worse in c0 until a date{ending}:"
