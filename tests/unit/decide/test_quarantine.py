"""Cases in quarantine are measured, judged and shown, and do not decide until a date."""

import pytest

from gate.decide.conclude.accept import list_set_apart, note_quarantine
from gate.records.cases import Metric, Policy, Quarantine
from gate.records.verdict import Outcome, Status
from gate.report import render
from tests.make import TODAY, Situation, decide, find_row, make_failure, make_row
from tests.words import describe_comparison, describe_steps, write_notes, write_opening

ID = "mlp/inference-float32-smoke-default"
FAILURE = make_failure(ID)


def make_entry(
    case: str = "mlp/*", metric: Metric | None = Metric.GRAPH_BREAKS, expires: str = TODAY
) -> Quarantine:
    return Quarantine(case=case, metric=metric, owner="ada", reason="breaks by itself.", expires=expires)


# One graph break more; two recompiles as ever.
BROKEN = Situation(
    before={Metric.GRAPH_BREAKS: (1.0,), Metric.RECOMPILES: (2.0,)},
    after={Metric.GRAPH_BREAKS: (2.0,), Metric.RECOMPILES: (2.0,)},
)


def test_a_finding_in_quarantine_has_no_vote() -> None:
    """It is REGRESSED with owner and date, and the verdict passes on the rest."""
    verdict = decide(BROKEN, quarantine=(make_entry(),))
    row = find_row(verdict, Metric.GRAPH_BREAKS)
    assert (row.status, row.decides, row.quarantined) == (Status.REGRESSED, False, True)
    assert describe_comparison(row).endswith("Quarantined by ada until 2026-03-01: breaks by itself.")
    assert find_row(verdict, Metric.RECOMPILES).decides
    assert verdict.outcome is Outcome.PASS
    assert write_notes(verdict)[-1] == (
        "Quarantined by ada until 2026-03-01, so it does not decide: mlp/* graph_breaks"
        f" (breaks by itself). Now: {ID} graph_breaks REGRESSED."
    )


@pytest.mark.parametrize(("case", "outcome"), [("tag:flaky", "PASS"), ("!tag:flaky", "REGRESSION")])
def test_a_quarantine_names_cases_by_tag(case: str, outcome: str) -> None:
    """A quarantine is of cases that have a tag, or that lack it."""
    verdict = decide(BROKEN, quarantine=(make_entry(case),), tags={ID: ("flaky",)})
    assert verdict.outcome is Outcome(outcome)


def test_what_follows_a_metric_in_quarantine_has_no_vote_either() -> None:
    """The speedup does not decide if compiled latency is in quarantine."""
    jitter = (1.0, 1.01, 0.99, 1.005, 0.995)
    situation = Situation(
        before={
            Metric.EAGER_LATENCY: tuple(0.02 * factor for factor in jitter),
            Metric.COMPILED_LATENCY: tuple(0.01 * factor for factor in jitter),
        },
        after={Metric.EAGER_LATENCY: (0.02, 0.0201), Metric.COMPILED_LATENCY: (0.015, 0.0151)},
    )
    assert decide(situation).outcome is Outcome.REGRESSION
    verdict = decide(situation, quarantine=(make_entry(metric=Metric.COMPILED_LATENCY),))
    row = find_row(verdict, Metric.WARM_SPEEDUP)
    assert (row.status, row.decides, row.quarantined) == (Status.REGRESSED, False, True)
    assert verdict.outcome is not Outcome.REGRESSION


def test_past_its_day_it_decides_again() -> None:
    """After its date the regression counts, and a note says that the quarantine expired."""
    verdict = decide(BROKEN, quarantine=(make_entry(expires="2026-02-28"),))
    assert find_row(verdict, Metric.GRAPH_BREAKS).decides
    assert verdict.outcome is Outcome.REGRESSION
    assert write_notes(verdict)[-1] == (
        "The quarantine of mlp/* graph_breaks by ada expired on 2026-02-28"
        " and it decides again: breaks by itself."
    )


@pytest.mark.parametrize(
    "entry",
    [
        make_entry(case="vit/*"),
        make_entry(metric=Metric.DRIFT),
        make_entry(case="vit/*", expires="2026-02-28"),
    ],
)
def test_other_cases_and_metrics_keep_their_vote(entry: Quarantine) -> None:
    """An entry for something else changes nothing and is not mentioned."""
    verdict = decide(BROKEN, quarantine=(entry,))
    assert verdict.outcome is Outcome.REGRESSION
    assert not any("uarantine" in note for note in write_notes(verdict))


@pytest.mark.parametrize(
    ("metric", "outcome"), [(None, Outcome.PASS), (Metric.COMPILED_LATENCY, Outcome.INCOMPLETE)]
)
def test_a_failure_is_covered_with_the_whole_case_only(metric: Metric | None, outcome: Outcome) -> None:
    """A crash is covered by a quarantine of the case, not of its latency."""
    other = Situation(case_id="vit/x", before={Metric.RECOMPILES: (0.0,)}, after={Metric.RECOMPILES: (0.0,)})
    verdict = decide(Situation(failures=(FAILURE,)), other, quarantine=(make_entry(metric=metric),))
    assert verdict.outcome is outcome
    notes = [note for note in write_notes(verdict) if "Now: " in note]
    assert [note.partition("Now: ")[2] for note in notes] == ([f"{ID} whole case FAILED."] if notes else [])
    assert bool(notes) is (metric is None)


def test_a_note_names_three_findings_and_counts_all() -> None:
    """Of four that are worse, in the order of the report, and of one that is not."""
    worse = (Metric.GRAPH_BREAKS, Metric.RECOMPILES, Metric.UNIQUE_GRAPHS, Metric.EAGER_FALLBACKS)
    rows = [make_row(ID, metric, decides=False, quarantined=True) for metric in worse]
    same = make_row(ID, Metric.CUDAGRAPH_SKIPS, Status.UNCHANGED, decides=False, quarantined=True)
    better = make_row(ID, Metric.PEAK_MEMORY, Status.IMPROVED, decides=False, quarantined=True)
    policy = Policy(thresholds={}, quarantine=(make_entry(metric=None),), today=TODAY)
    (note,) = note_quarantine([better, *rows, same], policy)
    assert (note.metrics, note.numbers) == (worse[:3], {"worse": 4, "comparisons": 6})


def test_quiet_quarantine_says_so() -> None:
    """If nothing is worse the note counts what does not decide."""
    same = {Metric.GRAPH_BREAKS: (1.0,), Metric.RECOMPILES: (2.0,)}
    verdict = decide(Situation(before=same, after=same), quarantine=(make_entry(metric=None),))
    assert write_notes(verdict)[-1].endswith("Now: none of 2 comparisons is worse.")
    assert verdict.outcome is Outcome.NOTHING_COMPARED


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        (("apart", "apart"), (ID,)),
        (("apart", "decides"), ()),
        (("decides", "apart"), ()),
        (("apart", "shown"), (ID,)),
        (("shown", "shown"), ()),
    ],
)
def test_a_case_is_set_apart_where_all_that_may_decide_is(
    votes: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    """It is set apart where what would decide is in quarantine; what is only shown does not count."""
    rows = [
        make_row(ID, metric, decides=vote == "decides", quarantined=vote == "apart")
        for metric, vote in zip((Metric.GRAPH_BREAKS, Metric.RECOMPILES), votes, strict=True)
    ]
    assert list_set_apart(rows) == expected


def test_the_report_shows_it() -> None:
    """A report has a row in brackets with the owner."""
    text = render(decide(BROKEN, quarantine=(make_entry(),)), "text")
    assert "(worse)" in text
    assert "Quarantined by ada until 2026-03-01: breaks by itself." in " ".join(text.split())


def test_quarantine_with_a_case_without_a_baseline() -> None:
    """The report names both, each with its next step."""
    values = {Metric.GRAPH_BREAKS: (1.0,)}
    apart = Situation(case_id="mlp/x", before=values, after=values)
    new = Situation(case_id="vit/x", after=values)
    verdict = decide(apart, new, quarantine=(make_entry(metric=None),))
    assert write_opening(verdict) == (
        "2 cases measured, none judged: 1 is quarantined, no baseline applies to the others."
    )
    assert "1 case is quarantined: " in describe_steps(verdict)[0]
    assert "Record baselines" in describe_steps(verdict)[1]
