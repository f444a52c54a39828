"""The report for a pull request."""

import html
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.run import FailureKind
from gate.records.verdict import Cause, Status, Verdict
from gate.report.markdown import FULL, MAX_COMMENT, Layout, escape_code, escape_text, render_markdown
from tests.make import make_change, make_failure, make_row
from tests.words import make_facts

PARSER = MarkdownIt("gfm-like", {"linkify": False})
OWN_TAGS = {
    "details",
    "sub",
    "/sub",
    "details open",
    "/details",
    "summary",
    "/summary",
    "sup",
    "/sup",
    "pre",
    "/pre",
    "code",
    "/code",
}
HOSTILE = st.text(alphabet=st.sampled_from(list("|`*_<>@#[]()!\\&~$\n\r\t -a1:/.\u202e\u2028")), max_size=60)


def list_tokens(text: str) -> list[Token]:
    """All tokens of a Markdown text, inline ones after their block."""
    flat: list[Token] = []
    for token in PARSER.parse(text):
        flat += [token, *(token.children or ())]
    return flat


def count_cells(text: str) -> set[int]:
    """Numbers of columns of the first table's rows."""
    rows: list[int] = []
    for token in list_tokens(text):
        if token.type == "tr_open":
            rows.append(0)
        if token.type in {"td_open", "th_open"}:
            rows[-1] += 1
        if token.type == "table_close":
            break
    return set(rows)


def list_tags(text: str) -> set[str]:
    """Names of the HTML tags that a browser sees."""
    raw = (token.content for token in list_tokens(text) if token.type in {"html_inline", "html_block"})
    return {tag for content in raw for tag in re.findall(r"<(/?[a-zA-Z!?][^>]*)>", content)}


def test_a_regression_is_read_without_a_click(verdicts: Mapping[str, Verdict]) -> None:
    """Headline, table, and regressed cases open with causes and commands."""
    report = render_markdown(verdicts["regression"])

    worst = "compiled latency 12.1 ms -&gt; 15.8 ms (+30.6 %)"
    assert report.startswith(f"## \N{CROSS MARK} REGRESSION: 2 cases worse, worst: {worst}")
    assert "<details open><summary><code>bert/inference-float32-smoke-default</code>: graph breaks" in report
    assert "- why: New graph break at encoder.py&#58;41" not in report
    assert "- run again: `compile-gate check --select bert/inference-float32-smoke-default`" in report


def test_every_row_has_all_columns(situation: tuple[str, Verdict]) -> None:
    """Tables are rectangular, and the first is narrow."""
    assert count_cells(render_markdown(situation[1])) <= {5, 8}


def test_only_our_own_html(situation: tuple[str, Verdict]) -> None:
    """The only tags are details, its summary and sup."""
    assert list_tags(render_markdown(situation[1])) <= OWN_TAGS


def test_many_rows_are_few(verdicts: Mapping[str, Verdict]) -> None:
    """120 cases 10 to 40 % slower are one row with a fold."""
    report = render_markdown(verdicts["many_rows"])

    assert report.count("(slower)** |") == 1
    assert report.count("<summary>120 cases") == 1
    assert "| `model_119/inference-float32-smoke-default` | 12.1 ms | 16.9 ms | +39.8 % |" in report
    assert len(report) < MAX_COMMENT


def test_rows_are_capped(verdicts: Mapping[str, Verdict]) -> None:
    """Rows that are left out are counted."""
    report = render_markdown(verdicts["many_rows"], Layout(members=3, case_lines=1))

    few = render_markdown(verdicts["regression"], Layout(rows=2, blocks=1))
    assert "... and 4 more rows, in `verdict.json`" in few
    assert "... and 1 more case, in `verdict.json`" in few
    assert "... and 117 more cases, in `verdict.json`" in report
    assert "... and 119 more cases, in `verdict.json`" in report
    assert len(report) < len(render_markdown(verdicts["many_rows"], FULL))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a | b", "a &#124; b"),
        ("`x`", "&#96;x&#96;"),
        ("<b> & c", "&lt;b&gt; &amp; c"),
        ("@team see #12", "@&#8203;team see #&#8203;12"),
        ("GH-12, gh-7, HIGH-3", "GH-&#8203;12, gh-&#8203;7, HIGH-3"),
        ("compiled_latency _x_", "compiled_latency &#95;x&#95;"),
        ("https://a.b", "https&#58;//a.b"),
    ],
)
def test_text_is_escaped(text: str, expected: str) -> None:
    """Tables, code, HTML, mentions, references, emphasis and links are shown as text."""
    assert expected == escape_text(text)


def test_code_is_plain_where_it_can_be() -> None:
    """A usual case id is in backticks, an unusual one in HTML entities."""
    assert [escape_code("a/b-c"), escape_code("a|b`")] == ["`a/b-c`", "<code>a&#124;b&#96;</code>"]


def test_what_is_cut_says_so() -> None:
    """A text of more than 300 characters ends in dots."""
    assert [escape_text("x" * 301), escape_text("x" * 300)] == ["x" * 297 + "...", "x" * 300]
    assert escape_code("y" * 301) == f"`{'y' * 297}...`"


@settings(max_examples=150)
@given(HOSTILE)
def test_escaped_text_is_only_text(text: str) -> None:
    """A parser finds only text in any escaped string."""
    tokens = list_tokens(f"x {escape_text(' '.join(text.split()))} x")

    assert {token.type for token in tokens} <= {
        "paragraph_open",
        "inline",
        "text",
        "paragraph_close",
        "text_special",
    }


@settings(max_examples=150)
@given(HOSTILE)
def test_escaped_code_reads_back(text: str) -> None:
    """Code shows exactly its characters."""
    line = " ".join(text.split())
    if line:
        code = escape_code(line)
        shown = code[1:-1] if code.startswith("`") else html.unescape(code[len("<code>") : -len("</code>")])

        assert line == shown


@settings(max_examples=60, derandomize=True)
@given(HOSTILE, HOSTILE, HOSTILE)
def test_hostile_verdicts_stay_in_their_cells(
    verdicts: Mapping[str, Verdict], case_id: str, sentence: str, cause: str
) -> None:
    """No id, sentence, cause or log adds a column, tag, link or image."""
    report = render_markdown(make_hostile(verdicts["regression"], case_id, sentence, cause))

    assert {5} == count_cells(report)
    assert list_tags(report) <= OWN_TAGS
    assert not {"link_open", "image", "heading_open"} & {t.type for t in list_tokens(report) if t.tag != "h2"}


def test_a_hostile_verdict_cannot_exceed_a_comment(verdicts: Mapping[str, Verdict]) -> None:
    """The report fits even if every character needs an entity."""
    notes = make_facts(Code.RULES_OF, *("|" * 400 for _ in range(400)))
    steps = make_facts(Code.SETTLE_QUIETLY, *("|" * 400 for _ in range(400)))
    headline = make_facts(Code.REGRESSED_CASE, "<" * 4000)
    hostile = replace(verdicts["many_rows"], headline=headline, notes=notes, next_steps=steps)

    assert len(render_markdown(hostile)) <= MAX_COMMENT + 1


def make_hostile(verdict: Verdict, case_id: str, sentence: str, cause: str) -> Verdict:
    """The verdict with strings of an attacker's choice."""
    rows = tuple(
        replace(row, case_id=f"c{case_id}", remarks=make_facts(Code.ACCEPTED_BY, sentence))
        for row in verdict.comparisons
    )
    failure = make_failure(f"c{case_id}", cause, kind=FailureKind.ERROR, stage="build", log_tail=cause)
    why = Cause(case_id=f"c{case_id}", fact=make_facts(Code.GRAPH_BREAK, cause)[0])
    return replace(
        verdict,
        headline=make_facts(Code.REGRESSED_CASE, sentence),
        comparisons=rows,
        failures=(failure,),
        causes=(why,),
        notes=make_facts(Code.RULES_OF, cause),
        next_steps=make_facts(Code.SETTLE_QUIETLY, sentence),
    )


@pytest.mark.parametrize("count", [1, 4])
def test_what_got_better_is_not_folded_away_with_what_could_not_be_decided(
    verdicts: Mapping[str, Verdict], count: int
) -> None:
    """The improvement of a case, and of a row of four, is above the fold with what is open."""
    rows = [
        make_row(f"m{number}/x", metric, status, change=make_change(centre, 0.01))
        for number in range(count)
        for metric, status, centre in (
            (Metric.COMPILED_LATENCY, Status.IMPROVED, -0.3),
            (Metric.COLD_COMPILE_TIME, Status.INCONCLUSIVE, 0.08),
        )
    ]
    report = render_markdown(
        replace(verdicts["pass"], cases=(), comparisons=tuple(rows), failures=(), causes=())
    )
    above, fold = report.split("<details><summary>Inconclusive</summary>")
    assert "| compiled latency |" in above
    assert "| cold compile time |" not in above
    assert "| cold compile time |" in fold
    assert "| compiled latency |" not in fold
    assert all(f"m{number}/x" in above for number in range(count))
