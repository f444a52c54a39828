"""``/accept-regression``: its words, and which regressions become acceptances."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import CASES, ENTRY, make_comparison, make_failing, make_regressed, make_unchanged, make_verdict
from refreshes import make_request

from gate.publish.comment_commands import (
    ACCEPT_COMMAND,
    REFRESH_COMMAND,
    Accepted,
    AcceptTerms,
    CommandRefusedError,
    CommandWords,
    accept_verdict,
    parse_words,
    render_accepted,
)
from gate.publish.shown import make_shown
from gate.records.cases import Acceptance, Metric
from gate.records.verdict import Outcome, Reason, Status, Verdict

HEAD = "a" * 40
LATENCY = Metric.COMPILED_LATENCY


def parse(text: str) -> CommandWords:
    return parse_words(ACCEPT_COMMAND, tuple(text.split()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('reason="the new attention"', CommandWords(reason="the new attention")),
        ("reason=“the new attention”", CommandWords(reason="the new attention")),  # as a phone writes it
        ("reason=the new attention", CommandWords(reason="the new attention")),  # up to the line's end
        ("reason=the new attention select=bert/*", CommandWords(reason="the new attention", select="bert/*")),
        ("reason=it's worth it", CommandWords(reason="it's worth it")),
        (
            'select=bert/*,!tag:slow metric=compiled_latency abcdef1 reason="x = y"',
            CommandWords(reason="x = y", select="bert/*,!tag:slow", metric=LATENCY, sha="abcdef1"),
        ),
        ('reason="x" abcdef1 select=bert', CommandWords(reason="x", select="bert", sha="abcdef1")),
    ],
)
def test_the_words_may_come_in_any_order(text: str, expected: CommandWords) -> None:
    """A selection as in a refresh, a metric, a commit, and a reason with spaces in it."""
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "its reason is missing"),
        ('reason=""', "its reason is missing"),
        ('reason=" "', "its reason is missing"),
        (f'reason="{"x" * 301}"', "its reason is missing, or is not one line of 1 to 300"),
        ("reason=\u202ex", "its reason is missing, or is not one line of 1 to 300 visible"),
        ('reason="a" reason="b"', "word 2 after the command cannot be read"),
        ('reason="a b"c', "word 1 after"),
        ('reason="a', "word 1 after"),
        ('bert/* reason="x"', "word 1 after"),
        ('metric=latency reason="x"', "word 1 after"),
        ('select=a select=b reason="x"', "word 2 after"),
        ('select=$(id) reason="x"', "word 1 after"),
        ('reason="two words" @octo-org/all', "word 3 after"),
    ],
)
def test_words_that_mean_nothing_are_refused(text: str, words: str) -> None:
    """A mistyped metric must not accept everything; the answer repeats nothing of the comment."""
    with pytest.raises(CommandRefusedError, match=words) as caught:
        parse(text)
    assert "Write: /accept-regression" in caught.value.fix
    assert "octo-org" not in caught.value.what


@given(
    st.text(max_size=200),
    st.sampled_from(("", "reason=", 'select=a reason="')),
    st.sampled_from((ACCEPT_COMMAND, REFRESH_COMMAND)),
)
def test_any_words_are_safe_or_refused(text: str, begin: str, command: str) -> None:
    """Any text gives one bounded line as the reason, and no option, shell code or path."""
    try:
        words = parse_words(command, tuple((begin + text).split()))
    except CommandRefusedError:
        return
    assert words.reason.isprintable()
    assert (command == ACCEPT_COMMAND) <= len(words.reason) <= 300
    assert re.fullmatch(r"(?!-)[A-Za-z0-9_.,:/!*?\[\]-]*", words.select)
    assert re.fullmatch(r"([0-9a-f]{7,40})?", words.sha)


TERMS = AcceptTerms(
    cases=CASES,
    workflow=".github/workflows/gate.yml",
    artifact_name="compile-gate",
    today="2026-11-01",
    gate="a/gate.yml",
)


def weigh(verdict: Verdict, text: str = 'reason="worth it"', terms: AcceptTerms = TERMS) -> Accepted:
    request = make_request(author="ada", head_sha=HEAD, words=parse(text))
    return accept_verdict(make_shown(verdict), request, terms)


def accept(verdict: Verdict, text: str = 'reason="worth it"', terms: AcceptTerms = TERMS) -> list[Acceptance]:
    return list(weigh(verdict, text, terms).acceptances)


def make_entry(metric: Metric | None = LATENCY, allowance: float = 0.33, case: int = 0) -> Acceptance:
    named = replace(ENTRY, case=CASES[case].id, gate=TERMS.gate, commit=HEAD)
    return replace(named, metric=metric, allowance=allowance)


LACK = [make_entry(None, 0.0, case) for case in range(len(CASES))]
BREAKS = make_comparison(CASES[1], Metric.GRAPH_BREAKS, Status.REGRESSED, Reason.BEYOND_BAR, (1.0, 3.0))
TWO = make_verdict(*make_regressed(CASES[0]), BREAKS, *make_unchanged(CASES[2]))
NEW = [make_comparison(case, LATENCY, Status.NEW, Reason.NO_BASELINE) for case in CASES]


def test_what_regressed_and_decides_is_accepted_and_nothing_else() -> None:
    """+30.6 % with an interval up to +32.6 % is 33 %; two breaks more are 2; unchanged rows are left."""
    expected = [make_entry(), make_entry(Metric.GRAPH_BREAKS, 2.0, case=1)]
    assert accept(TWO) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('select=bert reason="worth it"', make_entry()),
        ('select=resnet50/* reason="worth it"', make_entry(Metric.GRAPH_BREAKS, 2.0, case=1)),
        ('metric=compiled_latency reason="worth it"', make_entry()),
    ],
)
def test_only_what_the_comment_names_is_accepted(text: str, expected: Acceptance) -> None:
    """A comment selects by case, by glob or by metric."""
    assert accept(TWO, text) == [expected]


def test_what_does_not_decide_is_not_accepted() -> None:
    """A control that moved, and a case in quarantine, fail nothing."""
    control = replace(make_regressed(CASES[1])[0], decides=False)
    verdict = make_verdict(*make_regressed(CASES[0]), control)
    assert accept(verdict) == [make_entry()]


def test_a_case_that_the_default_branch_does_not_know_is_not_accepted() -> None:
    """A case id from the artifact is written into a file only if the registry has it."""
    terms = replace(TERMS, cases=CASES[1:])
    assert accept(TWO, terms=terms) == [make_entry(Metric.GRAPH_BREAKS, 2.0, case=1)]
    with pytest.raises(CommandRefusedError, match="registry does not have"):
        accept(make_failing(), terms=terms)


def test_an_interval_that_the_artifact_makes_up_widens_nothing() -> None:
    """A measured change of 6 % with an upper end of a million is accepted up to 12 %."""
    slower, other = make_regressed(CASES[0])
    lie = replace(slower, change=replace(slower.change, centre=0.06, high=1e6))  # type: ignore[type-var]
    assert accept(make_verdict(lie, other)) == [make_entry(allowance=0.12)]


def test_a_lack_of_baselines_is_taken_where_nothing_could_be_compared() -> None:
    """The first pull request has nothing to compare with, and a writer accepts that."""
    assert accept(make_verdict(*NEW)) == LACK


def test_a_limit_that_needs_no_baseline_is_accepted_with_their_lack() -> None:
    """Once drift beyond its limit is accepted, nothing is left to compare: both are accepted at once."""
    drift = make_comparison(CASES[0], Metric.DRIFT, Status.REGRESSED, Reason.LIMIT_EXCEEDED)
    beyond = replace(
        drift,
        baseline=None,
        change=replace(drift.change, centre=0.5, low=0.4, high=0.611),  # type: ignore[type-var]
    )
    accepted = accept(make_verdict(beyond, *NEW[1:]))
    assert accepted == [make_entry(Metric.DRIFT, 0.62), *LACK]


def test_a_pass_that_wants_more_baselines_can_be_taken() -> None:
    """With `fail-on: new` a PASS over part of the plan fails; a comment can accept that lack."""
    verdict = make_verdict(*make_unchanged(CASES[0]), *NEW[1:])
    assert accept(verdict) == LACK[1:]


def test_a_lack_of_baselines_is_taken_of_known_cases_alone() -> None:
    """A case id from the artifact is written into a file only if the registry has it."""
    assert accept(make_verdict(*NEW), terms=replace(TERMS, cases=CASES[1:])) == LACK[1:]
    with pytest.raises(CommandRefusedError, match="registry does not have"):
        accept(make_verdict(*NEW), terms=replace(TERMS, cases=()))


def test_a_regression_next_to_new_cases_takes_no_lack_of_baselines() -> None:
    """By default new cases fail nothing; where they do, a second comment can accept them."""
    verdict = make_verdict(*make_regressed(CASES[0]), *NEW[1:])
    assert accept(verdict) == [make_entry()]


CRASHED = make_comparison(CASES[2], LATENCY, Status.FAILED, Reason.CASE_FAILED)


def test_a_regression_next_to_a_crash_can_be_accepted_and_the_crash_cannot() -> None:
    """The acceptance covers the regression; the outcome stays INCOMPLETE."""
    verdict = make_verdict(*make_regressed(CASES[0]), CRASHED)
    assert accept(verdict) == [make_entry()]


@pytest.mark.parametrize(("case", "named"), [(1, True), (2, False)])
def test_the_answer_names_what_may_follow(case: int, named: bool) -> None:
    """It names an open time of the case whose break is accepted, and no other case's."""
    row = make_comparison(CASES[case], LATENCY, Status.INCONCLUSIVE, Reason.UNSETTLED)
    answer = render_accepted(weigh(make_verdict(BREAKS, row)))
    assert ("Inconclusive so far, and not covered: compiled latency." in answer) is named


GONE = replace(CRASHED, status=Status.MISSING, reason=Reason.REMOVED)


@pytest.mark.parametrize("text", ['reason="worth it"', 'select=unet reason="worth it"'])
def test_a_case_that_the_change_removes_can_be_accepted(text: str) -> None:
    """The acceptance allows no regression of it; other cases are judged as before."""
    verdict = make_verdict(*make_unchanged(CASES[0]), GONE)
    weighed = weigh(verdict, text)
    assert weighed.acceptances == (make_entry(allowance=0.0, case=2),)
    assert (weighed.remaining, weighed.left) == (Outcome.PASS, 0)
    assert "| the whole case | removed |  |" in render_accepted(weighed)
    assert "until 2026-11-15: 1 of what regressed or is removed." in render_accepted(weighed)


def test_an_acceptance_of_how_fast_a_case_is_does_not_remove_it() -> None:
    """A removal that the comment does not name stays, and is counted."""
    verdict = make_verdict(*make_regressed(CASES[0]), GONE)
    weighed = weigh(verdict, 'select=bert reason="worth it"')
    assert (weighed.remaining, weighed.left) == (Outcome.INCOMPLETE, 1)


@pytest.mark.parametrize(
    ("verdict", "text", "words"),
    [
        (make_verdict(CRASHED), 'reason="x"', "not all cases could be measured"),
        (make_verdict(*make_unchanged(CASES[0])), 'reason="x"', "nothing regressed"),
        (
            make_verdict(make_comparison(CASES[0], LATENCY, Status.INCONCLUSIVE, Reason.UNSETTLED)),
            'reason="x"',
            "nothing is shown to be worse",
        ),
        (TWO, 'select=unet reason="x"', "no regression is among what the command names"),
        (TWO, 'metric=drift reason="x"', "no regression is among what the command names"),
        (make_verdict(*NEW), 'metric=drift reason="x"', "no regression is among what the command names"),
        (TWO, 'select=bort reason="x"', "the selection names no case of the default branch"),
    ],
)
def test_a_comment_with_nothing_to_accept_is_refused_with_the_next_step(
    verdict: Verdict, text: str, words: str
) -> None:
    """A crash, a pass, an inconclusive time and another case."""
    with pytest.raises(CommandRefusedError, match=words) as caught:
        accept(verdict, text)
    assert caught.value.fix
