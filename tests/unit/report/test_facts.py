"""Every fact has words for its places, without words that may not be quoted."""

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import (
    CAUSE_CODES,
    FAILURE_CODES,
    HEADLINE_CODES,
    MORE_NUMBERS,
    NOTE_CODES,
    REMARK_CODES,
    STEP_CODES,
    UNKNOWN_CODES,
    WARNING_CODES,
    Fact,
    has_shape,
    name_words,
)
from gate.records.studies import Flaw, Instability
from gate.records.verdict import Outcome, Reason, Status, Verdict
from gate.report.studies import describe_instability
from gate.report.words.comparisons import describe_comparison
from gate.report.words.facts import describe_cause, describe_disturbances, describe_measuring, write_note
from gate.report.words.headline import write_headline, write_why
from gate.report.words.steps import write_step
from tests.make import make_row

# Of these the words depend on what stands beside them.
_BESIDE = frozenset({Code.AGAINST_BASE})
_ALL = list(Code)
INSTABILITY_CODES = {*_ALL[_ALL.index(Code.VALUES_RANGE) : _ALL.index(Code.CONTINUE)], Code.FAILURE}
_EVENTS = _ALL[_ALL.index(Code.UNCOMMITTED_BEFORE) : _ALL.index(Code.VARIABLES_DROPPED)]
EVENT_CODES = {*_EVENTS, Code.TEXT, *WARNING_CODES}
_NAMES = ("author", "owner", "expires", "reason", "pattern", "reasons", "location")


def make_fact(code: Code) -> Fact:
    """A fact with 2 for each number, one case, one metric and unique names."""
    return Fact(
        code=code,
        numbers=dict.fromkeys(sorted(code.numbers), 2.0),
        cases=("bert/x",),
        metrics=(Metric.GRAPH_BREAKS,),
        names={name: (f"the {name}",) for name in _NAMES},
    )


def test_every_code_has_a_place() -> None:
    """A code without a place could not be read again."""
    of_verdicts = {*HEADLINE_CODES, *REMARK_CODES, *CAUSE_CODES, *NOTE_CODES, *STEP_CODES}
    of_others = {*INSTABILITY_CODES, *EVENT_CODES, *UNKNOWN_CODES, *FAILURE_CODES}
    assert {*of_verdicts, *of_others} == set(Code)


@pytest.mark.parametrize("code", sorted(INSTABILITY_CODES))
def test_every_instability_is_a_sentence(code: Code) -> None:
    fact = replace(make_fact(code), names=name_words(stage="eager", message="it broke."))
    text = describe_instability(
        Instability(case_id="bert/x", metric=Metric.GRAPH_BREAKS, flaw=Flaw.FAILED, fact=fact)
    )
    assert text.endswith(".")
    assert "{" not in text


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (Fact(code=Code.VALUES_RANGE, numbers={"trials": 3, "low": 0, "high": 2}), "range from 0 to 2."),
        (Fact(code=Code.TRIALS_VARY, numbers={"unseen": 0.2, "trials": 3}), "Even 3 trials"),
        (
            Fact(code=Code.PAIRS_VARY, numbers={"unseen": 0.2, "pairs": 12}),
            "nothing below 20 %",
        ),
    ],
)
def test_an_instability_has_its_numbers(fact: Fact, words: str) -> None:
    """Shares are percent, and values have their metric's unit."""
    instability = Instability(case_id="bert/x", metric=Metric.GRAPH_BREAKS, flaw=Flaw.TOO_NOISY, fact=fact)
    assert words in describe_instability(instability)


@pytest.mark.parametrize("code", sorted(NOTE_CODES))
def test_every_note_is_a_sentence(code: Code) -> None:
    """With names and without."""
    for fact in (make_fact(code), replace(make_fact(code), names={})):
        text = write_note(fact)
        assert text.endswith(".")
        assert "{" not in text


@pytest.mark.parametrize("code", sorted(EVENT_CODES | UNKNOWN_CODES))
def test_every_event_and_warning_has_words(code: Code) -> None:
    """With names and without."""
    for fact in (make_fact(code), replace(make_fact(code), names={})):
        assert "{" not in describe_measuring(fact)


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (
            Fact(code=Code.SERVER_SILENT, numbers={"wall_s": 41.4, "cpu_s": 30}),
            "the process that was to fork them failed, no answer in 30.0 CPU seconds (41 s by the clock)",
        ),
        (
            Fact(code=Code.IMPORT_STARTS_THREADS, names=name_words(thread="watcher")),
            "importing the model starts the thread 'watcher'",
        ),
        (Fact(code=Code.IMPORT_STARTS_THREADS), "importing the model starts threads of a library"),
        (
            Fact(code=Code.IMPORT_FAILED, names=name_words(exception="KeyError")),
            "importing the model fails: KeyError",
        ),
    ],
)
def test_why_workers_are_not_forked(fact: Fact, words: str) -> None:
    """The consequence is named before the reason."""
    before = "slower start, since each worker imports torch by itself: "
    assert describe_measuring(fact) == before + words


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (Fact(code=Code.LEFT_TO_EAGER, names=name_words(reason="it", location="")), "fell back to eager: it"),
        (
            Fact(code=Code.LEFT_TO_EAGER, names=name_words(reason="it", location="a.py:9")),
            "fell back to eager at a.py:9: it",
        ),
        (
            Fact(code=Code.UNKNOWN_HERE, metrics=(Metric.GRAPH_BREAKS,)),
            "this torch does not report graph breaks",
        ),
        (
            Fact(code=Code.REFERENCE_TOO_LARGE, numbers={"needed": 12 * 2**30, "free": 23 * 2**29}),
            (
                "drift is not measured, there is no room on the device, and the processor would need 12.0 GiB"
                " at least, and 11.5 GiB are free"
            ),
        ),
    ],
)
def test_what_a_trial_did_not_measure_is_named(fact: Fact, words: str) -> None:
    """The place is named if known, and metrics by their names in reports."""
    assert describe_measuring(fact) == words


def test_disturbances_are_named_with_the_worst_of_each() -> None:
    """Three are named, and the rest is counted."""
    numbers = {"crowded": 1.94, "cores": 2, "stolen": 0.031, "swapped": 96 * 2**20, "heated": 1, "shared": 1}
    assert describe_disturbances(Fact(code=Code.DISTURBED_BY, numbers=numbers)) == (
        "other programs kept 1.9 of 2 cores busy, the hypervisor took 3 % of the time,"
        " processor cores lowered their clocks for heat and 2 more"
    )
    throttled = Fact(code=Code.REPEATED, numbers={"throttled": 2}, names={"reasons": ("heat", "power")})
    assert describe_disturbances(throttled) == "the device lowered its clocks (heat, power)"
    assert not describe_disturbances(Fact(code=Code.TRIALS_DISTURBED))


@pytest.mark.parametrize("code", sorted(CAUSE_CODES))
def test_every_cause_has_words(code: Code) -> None:
    """With names and without."""
    for fact in (make_fact(code), replace(make_fact(code), names={})):
        assert describe_cause(fact)
        assert "{" not in describe_cause(fact)


@pytest.mark.parametrize("code", sorted(CAUSE_CODES))
def test_no_cause_has_a_hole(code: Code) -> None:
    """Without names no sentence has a gap."""
    numbers = dict.fromkeys((*code.numbers, *MORE_NUMBERS.get(code, ())), 2.0)
    text = describe_cause(Fact(code=code, numbers=numbers))
    assert not re.search(r"[:,(`] ?[.,;)`]|  | [.,;:]", text), text


@pytest.mark.parametrize(
    ("code", "name"), [(code, name) for code in sorted(CAUSE_CODES) for name in sorted(code.numbers)]
)
def test_every_number_of_a_cause_is_shown(code: Code, name: str) -> None:
    """Another number makes another sentence."""
    fact = replace(make_fact(code), names={"differences": ("the first",)})
    other = replace(fact, numbers={**fact.numbers, name: 7.0})
    assert describe_cause(fact) != describe_cause(other)


@pytest.mark.parametrize("code", sorted(STEP_CODES))
def test_every_step_has_words_or_a_command(code: Code, verdicts: Mapping[str, Verdict]) -> None:
    step = write_step(make_fact(code), verdicts["regression"])
    assert step.text or step.command.startswith("compile-gate ")
    assert "{" not in step.text


@pytest.mark.parametrize("code", sorted(HEADLINE_CODES - _BESIDE))
def test_every_headline_is_a_sentence(code: Code, verdicts: Mapping[str, Verdict]) -> None:
    text = write_headline(replace(verdicts["pass"], headline=(make_fact(code),)))
    assert len(text) > len("X.")
    assert text.endswith(".")
    assert "{" not in text


@pytest.mark.parametrize("code", sorted(REMARK_CODES))
def test_every_remark_shows(code: Code, verdicts: Mapping[str, Verdict]) -> None:
    """Each remark changes the comparison's sentence."""
    row = verdicts["pass"].comparisons[0]
    text = describe_comparison(replace(row, remarks=(make_fact(code),)))
    assert text != describe_comparison(row)
    assert "{" not in text


def quote(why: Code, numbers: Mapping[str, float]) -> Fact:
    """A fact that quotes a failure of this code."""
    return Fact(code=Code.FAILURE, numbers=numbers, names={"why": (why.value,)})


@pytest.mark.parametrize(
    ("fact", "is_right"),
    [
        (Fact(code=Code.PAIRS_DISTURBED, numbers={"disturbed": 2.0, "measured": 3.0}), True),
        (Fact(code=Code.TRIALS_CAME, numbers={"came": 2.0}), False),
        (Fact(code=Code.STOPPED, numbers={"minutes": 2.0}), False),
        (Fact(code=Code.CHANGED_PHASES, numbers={"inductor_after_s": 2.0}), True),
        (Fact(code=Code.CHANGED_PHASES, numbers={"evil_after_s": 2.0}), False),
        (Fact(code=Code.ACCEPT_TOO, numbers={"allowance": 1.0}), False),
        (Fact(code=Code.ACCEPT_TOO, numbers={"allowance": 1.0}, cases=("a",)), False),
        (Fact(code=Code.ACCEPT_TOO, numbers={"allowance": 1.0}, metrics=(Metric.DRIFT,)), False),
        (
            Fact(code=Code.ACCEPT_TOO, numbers={"allowance": 1.0}, cases=("a",), metrics=(Metric.DRIFT,)),
            True,
        ),
        (quote(Code.NO_RESULT, {"trial": 1.0, "status": 1.0}), True),
        (quote(Code.NO_RESULT, {"trial": 1.0}), False),
        (quote(Code.HANGS, {"trial": 1.0, "status": 1.0}), False),
        (quote(Code.RAISED, {"trial": 1.0}), True),
    ],
)
def test_a_fact_has_the_numbers_of_its_code(fact: Fact, is_right: bool) -> None:
    """A fact has exactly its code's numbers, and names its metric if it is about a comparison."""
    assert has_shape(fact) is is_right


@pytest.mark.parametrize(
    ("fact", "begins"),
    [
        (
            Fact(code=Code.UNUSED_ACCEPTANCE, metrics=(Metric.DRIFT,), names=name_words(pattern="acter/*")),
            "The acceptance of acter/* drift matches no case: remove it.",
        ),
        (
            Fact(code=Code.BASELINES_IDLE, numbers={"cases": 1}, cases=("actor/gone",)),
            "Baselines are stored of 1 case that gate.yml does not have: actor/gone. Renamed",
        ),
    ],
)
def test_what_matches_no_case_is_named(fact: Fact, begins: str) -> None:
    """Only the baselines of a case show that it was renamed or removed."""
    assert write_note(fact).startswith(begins)


def test_drift_above_its_limit_is_explained() -> None:
    """3.5 log2 units are shown as eleven times eager's error."""
    numbers = {"drift": 3.5, "limit": 3.0}
    fact = Fact(code=Code.DRIFT_ABOVE, numbers=numbers, cases=("bert/x",), metrics=(Metric.DRIFT,))
    assert write_note(fact) == (
        "bert/x: drift is above its limit of +3.00 (8.0x) with +3.50 (11x), and so is the baseline's:"
        " only the change counts."
    )


@pytest.mark.parametrize(
    ("note", "words", "command"),
    [
        ((), "compare side by side with the merge base:", "compile-gate ab --select bert/x"),
        # HEAD is the merge base itself: `ab` without a base would be refused.
        (
            (Fact(code=Code.NOTHING_DIFFERS, names={"base": ("main",)}),),
            "compare side by side with the commit before:",
            "compile-gate ab HEAD~1 --select bert/x",
        ),
        (
            (Fact(code=Code.NO_BASE, names={"reason": ("it is shallow",), "fix": ("Fetch it.",)}),),
            "compare side by side. Fetch it.",
            "",
        ),
    ],
)
def test_what_could_not_be_decided_is_settled_by_what_there_is(
    note: tuple[Fact, ...], words: str, command: str, verdicts: Mapping[str, Verdict]
) -> None:
    """The step names the merge base, the commit before it, or first what is missing."""
    verdict = replace(verdicts["inconclusive"], notes=note, options={})
    step = write_step(Fact(code=Code.SETTLE, cases=("bert/x",)), verdict)
    assert (step.text, step.command) == (f"To settle what is inconclusive, {words}", command)


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        (1, "Measured in one pair with the base only."),
        (2, "Pairs with the base differ too much from each other."),
    ],
)
def test_one_pair_does_not_differ_from_another(pairs: int, why: str, verdicts: Mapping[str, Verdict]) -> None:
    """A count that moved in the only pair needs a second one, and is not called noise."""
    open_yet = {"reason": Reason.UNSETTLED, "pairs": pairs, "more_pairs": 1}
    graphs = make_row("a/x", Metric.GRAPH_BREAKS, Status.INCONCLUSIVE, **open_yet)
    verdict = replace(verdicts["pass"], outcome=Outcome.INCONCLUSIVE, comparisons=(graphs,))
    assert write_why(verdict) == why


@pytest.mark.parametrize(("before", "counted"), [(0, "900 now"), (1200, "1,200 before, 900 now")])
def test_a_function_that_is_new_has_its_name(before: int, counted: str) -> None:
    """A count of 0 before does not remove the name."""
    numbers = {"share": 0.9, "before": before, "after": 900}
    fact = Fact(code=Code.FUNCTIONS_CALLED, numbers=numbers, names=name_words(function="a.b", callers="c"))
    added = "A compile makes more Python calls: 90 % of the added ones"
    assert describe_cause(fact) == f"{added} within a.b, {counted}, called by c."
