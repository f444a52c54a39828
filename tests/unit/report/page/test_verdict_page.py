"""The page of a verdict: its text, its links, and hostile text."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree as ET

import pytest

from gate.records.codes import Code
from gate.records.run import FailureKind, Frame, GraphBreak, Provenance, Recompile
from gate.records.verdict import KernelChange, Outcome, SideEvidence, Status, Verdict
from gate.report import render
from gate.report.content import make_report
from gate.report.pages import (
    MOST_WHOLE,
    PageCase,
    clean_link,
    list_cases,
    make_anchors,
    render_pages,
    render_verdict_page,
)
from tests.golden_files import check_golden
from tests.make import make_failure
from tests.recorded import runs
from tests.unit.report.page.hostile import HOSTILE
from tests.unit.report.page.reading import parse, read_text
from tests.words import make_facts

MOST_BYTES = 2_000_000


@cache
def judge_pairs() -> Verdict:
    """Four small models in pairs, of which one got slower and one crashed."""
    return runs.judge(runs.Situation(run=runs.load("pairs"), judged_by="pairs"))


@cache
def parse_pairs() -> ET.Element:
    return parse(render_verdict_page(judge_pairs()))[0]


def list_views(verdict: Verdict) -> tuple[PageCase, ...]:
    return tuple(list_cases(verdict, make_report(verdict, everything=True)))


@pytest.mark.parametrize("name", ["regression", "side_by_side", "incomplete", "inconclusive"])
def test_situation(verdicts: Mapping[str, Verdict], name: str) -> None:
    """Each situation's page has the stored text."""
    root, faults = parse(render(verdicts[name], "html"))

    assert not faults
    check_golden(f"report/{name}.html.txt", read_text(root))


def test_recorded_pairs() -> None:
    """The page of a measured run has the stored text, with its charts."""
    check_golden("report/recorded_pairs.html.txt", read_text(parse_pairs()))


def test_links_lead_somewhere() -> None:
    """Every link leads to an element of the page, ids are unique, and each case has a link."""
    root = parse_pairs()

    names = [element.get("id", "") for element in root.iter() if element.get("id")]
    links = [element.get("href", "") for element in root.iter("a")]
    assert len(names) == len(set(names))
    assert {link.removeprefix("#") for link in links} <= set(names)
    assert {f"#{view.anchor}" for view in list_views(judge_pairs())} <= set(links)


def test_anchors() -> None:
    """Case ids that differ in unusual characters have different anchors."""
    assert make_anchors(["a/b", "a b", "a-b"]) == {
        "a/b": "case-a-b",
        "a b": "case-a-b-2",
        "a-b": "case-a-b-3",
    }


def test_gravest_first() -> None:
    """Cases are sorted by gravity, and those that got worse are open."""
    views = list_views(judge_pairs())

    assert [view.kind for view in views] == sorted(
        (view.kind for view in views), key=("bad", "unsure", "other", "good", "same").index
    )
    folds = [element for element in parse_pairs().iter("details") if element.get("class") == "case"]
    assert ["open" in fold.attrib for fold in folds] == [view.kind == "bad" for view in views]


def test_both_sides_are_drawn() -> None:
    """A case in pairs has a chart for each metric and a table of phases."""
    views = {view.block.title: view for view in list_views(judge_pairs())}
    view = views[runs.STENCIL]

    titles = [plot.title for plots in view.plots.values() for plot in plots]
    assert titles[:3] == ["compiled latency", "eager latency", "warm speedup"]
    assert {"cold compile time", "warm compile time", "peak memory", "drift"} <= set(titles)
    assert view.view is not None
    assert view.view.phases.rows[0][0] == "dynamo"


def test_code_that_differs() -> None:
    """A kernel is shown as a diff, base before head."""
    verdict = judge_pairs()
    changed = KernelChange(name="gelu", before="load x\nmul 2\nstore\n", after="load x\nmul 3\nstore\n")
    evidence = tuple(replace(case_evidence, kernels=(changed,)) for case_evidence in verdict.evidence)

    views = list_views(replace(verdict, evidence=evidence))

    shown = next(view.view for view in views if view.view and view.view.differences).differences[0]
    assert shown.name == "gelu"
    assert shown.lines[1:] == (
        ("same", " load x"),
        ("removed", "-mul 2"),
        ("added", "+mul 3"),
        ("same", " store"),
    )
    assert not shown.note


def test_code_that_was_cut_says_so() -> None:
    """A difference beyond what was kept is marked as cut."""
    verdict = judge_pairs()
    cut = KernelChange(name="gelu", before="load x\n", after="load x\n", is_cut=True)
    evidence = tuple(replace(case_evidence, kernels=(cut,)) for case_evidence in verdict.evidence)
    page = render_verdict_page(replace(verdict, evidence=evidence))
    assert "more may differ further on" in page


def spoil(verdict: Verdict, text: str) -> Verdict:
    """The verdict with a text wherever a model, log, commit or machine may write one."""
    case = replace(verdict.cases[0], id=text, model=text)
    old = verdict.cases[0].id
    broken = GraphBreak(reason=text, location=text, stack=(Frame(location=text, function=text, code=text),))
    spoilt = SideEvidence(
        phases_s={text: 1.0, "dynamo": 1.0},
        graph_breaks=(broken,),
        recompile_reasons=(Recompile(guard=text),),
    )
    failure = make_failure(text, text, trial=0, kind=FailureKind.ERROR, stage=text, log_tail=text, log=text)
    return replace(
        verdict,
        headline=make_facts(Code.REGRESSED_CASE, text),
        next_steps=make_facts(Code.SETTLE_QUIETLY, text, text),
        notes=make_facts(Code.RULES_OF, text),
        cases=(case, *verdict.cases[1:]),
        comparisons=tuple(
            replace(row, case_id=text, remarks=make_facts(Code.ACCEPTED_BY, text))
            if row.case_id == old
            else row
            for row in verdict.comparisons
        ),
        causes=tuple(
            replace(cause, case_id=text, fact=make_facts(Code.GRAPH_BREAK, text)[0])
            if cause.case_id == old
            else cause
            for cause in verdict.causes
        ),
        failures=(failure,),
        evidence=tuple(
            replace(
                evidence,
                case_id=text,
                after=spoilt,
                kernels=(KernelChange(name=text, before="", after=text),),
            )
            if evidence.case_id == old
            else evidence
            for evidence in verdict.evidence
        ),
        environment=replace(
            verdict.environment, cpu=text, device_model=text, libraries={text: text}, settings={text: text}
        ),
        provenance=Provenance(commit=text, author=text, reason=text, run_url=text),
        base=replace(verdict.base, label=text, commit=text) if verdict.base else None,
        options={"--config": text},
    )


@cache
def keep_stencil() -> Verdict:
    """The verdict with one case, since the parser is slow."""
    verdict, name = judge_pairs(), runs.STENCIL
    return replace(
        verdict,
        cases=tuple(case for case in verdict.cases if case.id == name),
        comparisons=tuple(row for row in verdict.comparisons if row.case_id == name),
        causes=tuple(cause for cause in verdict.causes if cause.case_id == name),
        evidence=tuple(evidence for evidence in verdict.evidence if evidence.case_id == name),
        failures=(),
    )


def list_kinds(root: ET.Element) -> set[tuple[str, str]]:
    """Each element with each of its attributes."""
    return {(str(element.tag), name) for element in root.iter() for name in ("", *element.attrib)}


@cache
def list_plain_kinds() -> set[tuple[str, str]]:
    return list_kinds(parse(render_verdict_page(spoil(keep_stencil(), "plain")))[0])


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text(text: str) -> None:
    """No text of a model, log or commit adds an element, attribute, link or script."""
    root, faults = parse(render_verdict_page(spoil(keep_stencil(), text)))

    assert not faults
    assert list_kinds(root) <= list_plain_kinds()
    assert len(list(root.iter("script"))) == 1
    assert all(element.get("href", "").startswith("#") for element in root.iter("a"))


def test_hostile_text_is_shown() -> None:
    """Markup in a log is shown as text."""
    root, _ = parse(render_verdict_page(spoil(keep_stencil(), "<b onclick=alert(1)>x</b>")))

    assert "<b onclick=alert(1)>x</b>" in read_text(root)


def test_run_link() -> None:
    """Only an https address becomes a link."""
    assert clean_link("https://example.org/run/1") == "https://example.org/run/1"
    assert [clean_link(link) for link in ("javascript:alert(1)", "http://a", "https://a\u202e", "")] == [
        ""
    ] * 4


def multiply(verdict: Verdict, cases: int, trials: int) -> Verdict:
    """The verdict's first case so many times, with so many trials a side."""
    first = verdict.cases[0].id
    names = [f"model{number}/{first.partition('/')[2]}" for number in range(cases)]
    shown = next(evidence for evidence in verdict.evidence if evidence.case_id == first)

    def lengthen(side: SideEvidence) -> SideEvidence:
        values = {metric: (tuple(samples) * trials)[:trials] for metric, samples in side.values.items()}
        return replace(side, values=values)

    multiplied = replace(
        shown,
        after=lengthen(shown.after),
        before=lengthen(shown.before) if shown.before else None,
    )
    rows = [row for row in verdict.comparisons if row.case_id == first]
    return replace(
        verdict,
        outcome=Outcome.REGRESSION,
        cases=tuple(replace(verdict.cases[0], id=name) for name in names),
        comparisons=tuple(replace(row, case_id=name) for name in names for row in rows),
        evidence=tuple(replace(multiplied, case_id=name) for name in names),
        causes=tuple(
            replace(cause, case_id=name)
            for name in names
            for cause in verdict.causes
            if cause.case_id == first
        ),
        failures=(),
    )


def test_size() -> None:
    """1,000 cases with 10 trials a side are less than 2 MB."""
    page = render_verdict_page(multiply(keep_stencil(), 1000, 10))

    assert len(page.encode()) < MOST_BYTES
    assert len(re.findall('class="case"', page)) == MOST_WHOLE
    assert len(re.findall("<tr data-case=", page)) == 1000


def test_what_does_not_fit_into_the_page_has_one_of_its_own() -> None:
    """Of 51 cases 25 are on the page, and the others have linked pages, except unchanged ones."""
    many = multiply(keep_stencil(), 51, 3)
    quiet = many.cases[-1].id
    rows = (
        replace(row, status=Status.UNCHANGED) if row.case_id == quiet else row for row in many.comparisons
    )
    verdict = replace(many, comparisons=tuple(rows))
    whole, *others = render_pages(verdict)
    pages, links = dict(others), re.findall('href="(cases/[^"]+)"', whole[1])

    assert len(pages) == 25
    assert set(links) == set(pages)
    name, page = next(iter(pages.items()))
    assert 'href="../report.html"' in page
    assert f'id="{name.removeprefix("cases/").removesuffix(".html")}"' in page
    assert "Phases of a cold compile" in page


def test_command_is_printable() -> None:
    """Escape sequences in a commit do not reach the command to copy."""
    views = list_views(spoil(keep_stencil(), "a\x1b[31m\x08b"))

    assert views[0].block.command.isprintable()


def test_what_differs_between_both_sides_is_a_table() -> None:
    """Values that differ are listed; what one side lacks is "none" there."""
    verdict = judge_pairs()
    base = replace(verdict.environment, torch="2.12.0", libraries={})
    page = render_verdict_page(replace(verdict, base_environment=base))
    table = page[page.index("What differs between both sides") :].partition("</table>")[0]
    assert "<th scope=row>torch</th><td>2.12.0</td><td>2.13.0+cpu</td>" in table
    assert table.count("<th scope=row>") == 1 + len(verdict.environment.libraries)
    assert "<td>none</td>" in table


def test_sides_of_which_one_was_not_measured_are_not_called_the_same() -> None:
    """Sides that failed before a pair are not called equal."""
    verdict = judge_pairs()
    lost = replace(verdict, base_environment=verdict.environment, comparisons=())

    assert "Both sides were measured in the same environment." in render_verdict_page(
        replace(verdict, base_environment=verdict.environment)
    )
    assert "Not compared: no other side was measured" in render_verdict_page(lost)
