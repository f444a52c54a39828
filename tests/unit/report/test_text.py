"""The report for a terminal."""

import io
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from gate.records.cases import Metric, Threshold
from gate.records.codes import Code
from gate.records.run import Provenance
from gate.records.verdict import Outcome, Status, Verdict
from gate.report.text import MAX_BLOCKS, MIN_WIDTH, Detail, print_text, render_text
from tests import make
from tests.hosts import CPU_HOST
from tests.words import make_facts

ANSI = re.compile(r"\x1b\[[0-9;]*m")
TEXTS: SearchStrategy[str] = st.text(max_size=80)


def test_colour_adds_nothing_but_colour(situation: tuple[str, Verdict]) -> None:
    """Without colour all words are there."""
    coloured = render_text(situation[1], colour=True)
    stripped = [line.rstrip() for line in ANSI.sub("", coloured).splitlines()]

    assert ANSI.search(coloured)
    assert [line.rstrip() for line in render_text(situation[1]).splitlines()] == stripped


def test_the_verdict_alone(verdicts: Mapping[str, Verdict]) -> None:
    """The short form has headline, steps and counts, without a table."""
    report = render_text(verdicts["inconclusive"], detail=Detail.VERDICT)

    expected = (
        "INCONCLUSIVE  Nothing is shown to be worse; 1 of 30 comparisons is inconclusive.\n"
        "why    It looks changed, but noise could explain it.\n"
        "next   To settle what is inconclusive, compare side by side with the merge base:\n"
        "         compile-gate ab --select bert/inference-float32-smoke-default\n"
        "\n"
        "1 inconclusive, 29 unchanged\n"
        "largest unchanged: peak memory -0.40 % (smaller) in bert; from 6.0 % on it would\n"
        "have been noticed\n"
        "9f1c2d3e4b against stored baselines, 2026-03-20 09:00 UTC\n"
        "\n"
        "next   Or measure inconclusive cases again, with more trials:\n"
        "         compile-gate check --select bert/inference-float32-smoke-default --trials 6\n"
    )
    assert expected == render_text(verdicts["inconclusive"], width=80, detail=Detail.VERDICT)
    assert "measured" not in report


def test_the_answer_comes_first(verdicts: Mapping[str, Verdict]) -> None:
    """The order is outcome, first step, changes, other steps."""
    report = render_text(verdicts["regression"])
    marks = ["REGRESSION ", "next   Fix ", "  REGRESSED ", "  why ", "judged ", "\nrun  ", "next   Or "]
    places = [report.index(mark) for mark in marks]

    assert sorted(places) == places


def test_many_cases_are_cut_short_and_counted(verdicts: Mapping[str, Verdict]) -> None:
    """Of 120 cases with limits of their own the worst twenty are shown, and the rest counted."""
    rows = [
        replace(row, threshold=Threshold(relative=0.0001 * (index + 1), absolute=0.0))
        for index, row in enumerate(verdicts["many_rows"].comparisons)
        if row.status is Status.REGRESSED
    ]
    report = render_text(replace(verdicts["many_rows"], comparisons=tuple(rows)))

    assert report.count("rerun  ") == MAX_BLOCKS
    assert f"and {120 - MAX_BLOCKS} more: show them with -v" in report


def test_cases_that_share_a_sentence_are_one_row(verdicts: Mapping[str, Verdict]) -> None:
    """A group has one row with its first case and a count; -v has all."""
    report = " ".join(render_text(verdicts["many_rows"]).split())

    assert report.count("REGRESSED compiled latency") == 1
    assert "model_119/inference-float32-smoke-default +39.8 %," in report
    assert "and 114 more: -v lists them." in report


@pytest.mark.parametrize("width", [60, 70, 79])
def test_narrow_reports_lose_nothing(verdicts: Mapping[str, Verdict], width: int) -> None:
    """Values without a column are in a sentence."""
    report = " ".join(render_text(verdicts["regression"], width=width).split())

    for words in (
        "12.1 ms",
        "15.8 ms",
        "+30.6 % (slower)",
        "+12.1 %",
    ):
        assert words in report


def test_overhead_is_absolute_and_relative(verdicts: Mapping[str, Verdict]) -> None:
    """7.4 s of 142 s are 5.2 %."""
    assert "warm-up 9.3 s, compile-gate itself 7.4 s (5.2 %)\n" in render_text(verdicts["pass"])


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_any_encoding_can_be_printed_to(verdicts: Mapping[str, Verdict], encoding: str) -> None:
    """Characters that the stream lacks raise nothing."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    headline = make_facts(Code.REGRESSED_CASE, "caf\u00e9 \u2192 \u4f60")
    print_text(replace(verdicts["pass"], headline=headline), stream=stream)
    stream.seek(0)

    assert "caf" in stream.read()


@settings(max_examples=60)
@given(TEXTS, TEXTS, TEXTS)
@example("\x1b", "\x1b[2J", "\x1b")
def test_arbitrary_strings_are_shown_as_they_are(case_id: str, sentence: str, note: str) -> None:
    """Strings are not parsed as markup, and keep their escapes out of the terminal."""
    report = render_text(make_verdict(case_id, f"[bold]{sentence}[/nonsense]", note), width=MIN_WIDTH)

    assert "\x1b" not in report
    assert "[bold]" in report


def make_verdict(case_id: str, sentence: str, note: str) -> Verdict:
    """A verdict with these strings."""
    return make.make_verdict(
        make.make_row(case_id, Metric.GRAPH_BREAKS, remarks=make_facts(Code.ACCEPTED_BY, sentence)),
        outcome=Outcome.REGRESSION,
        headline=make_facts(Code.REGRESSED_CASE, note),
        next_steps=make_facts(Code.SETTLE_QUIETLY, note),
        notes=make_facts(Code.RULES_OF, note),
        environment=replace(
            CPU_HOST,
            device_model=note,
            cpu="",
            cores=1,
            threads=1,
            isa="",
            torch=note,
            python="",
            compiler="",
        ),
        provenance=Provenance(commit=note, author=note, created=note),
    )


def test_a_narrow_report_keeps_the_threshold(verdicts: Mapping[str, Verdict]) -> None:
    """The threshold is once in the sentence."""
    report = " ".join(render_text(verdicts["regression"], width=80).split())

    assert "Beyond the threshold of 5 %, and too large to be noise." in report
