"""The view of one case."""

from collections.abc import Mapping
from dataclasses import replace

from gate.records.run import CacheUse, GraphBreak
from gate.records.verdict import CaseEvidence, KernelChange, SideEvidence, Verdict
from gate.report.explain import make_view, render_explanation


def test_parts_stand_side_by_side() -> None:
    """A part that one side lacks is a dash, and each is one line."""
    before = SideEvidence(parts_s={"rows=4": 0.002})
    after = SideEvidence(parts_s={"rows=4": 0.003, "rows=8\nx": 1.5})
    view = make_view(CaseEvidence(case_id="a/b", before=before, after=after))
    assert view.parts.rows == (("rows=4", "2.00 ms", "3.00 ms"), ("rows=8 x", "-", "1.50 s"))
    assert make_view(CaseEvidence(case_id="a/b", after=SideEvidence())).parts.rows == ()


def test_phases_stand_in_their_order() -> None:
    """Phases of no time are left out, and names are words."""
    before = SideEvidence(phases_s={"other": 1.0, "dynamo": 2.0, "triton": 0.0})
    after = SideEvidence(phases_s={"code_generation": 0.5, "dynamo": 2.0})
    view = make_view(CaseEvidence(case_id="a/b", before=before, after=after))
    assert view.phases.rows == (
        ("dynamo", "2.00 s", "2.00 s"),
        ("code generation", "-", "500 ms"),
        ("in no phase", "1.00 s", "-"),
    )


def test_caches_count_what_could_not_be_cached() -> None:
    """Head has hits, misses and bypasses; the side before has none."""
    after = SideEvidence(caches={"fx": CacheUse(hits=3, misses=1, bypasses=2)})
    assert make_view(CaseEvidence(case_id="a/b", after=after)).caches.rows == (("fx", "-", "3 / 1 / 2"),)


def test_long_code_keeps_its_beginning() -> None:
    """Of a difference of 500 lines 400 are shown, with a note."""
    long = KernelChange(name="long", after="\n".join(f"line {number}" for number in range(500)))
    lost = KernelChange(name="lost")
    view = make_view(CaseEvidence(case_id="a/b", after=SideEvidence(), kernels=(long, lost)))
    first, second = view.differences
    assert first.lines[:2] == (("same", "@@ -0,0 +1,500 @@"), ("added", "+line 0"))
    assert len(first.lines) == 400
    assert first.note.startswith("Cut: ")
    assert (second.lines, second.note[:27]) == ((), "Its source was not kept; pa")


def test_break_without_a_place_says_so() -> None:
    """A graph break without a location is shown."""
    after = SideEvidence(graph_breaks=(GraphBreak(reason="no", location=""),))
    view = make_view(CaseEvidence(case_id="a/b", after=after))
    assert (view.breaks[0].location, view.breaks_before) == ("unknown place", 0)


def test_story_shows_the_beginning_of_what_changed(verdicts: Mapping[str, Verdict]) -> None:
    """Of a changed kernel twenty lines are shown, of a new one its length."""
    before, after = ("\n".join(f"{side} {number}" for number in range(40)) for side in ("was", "is"))
    kernels = (
        KernelChange(name="both", before=before, after=after),
        KernelChange(name="new", after=after),
        KernelChange(name="gone", before=before, is_cut=True),
    )
    verdict = verdicts["regression"]
    case = verdict.cases[0]
    evidence = CaseEvidence(case_id=case.id, after=SideEvidence(), kernels=kernels)
    story = render_explanation(replace(verdict, evidence=(evidence,)), case, "out")

    code = story[story.index("Generated code: 3 kernels changed; out/report.html has more\n") :].splitlines()
    assert code[1:3] == ["  --- before/both", "  +++ after/both"]
    assert code[23:25] == ["  ... and 61 more lines", "  new is new, 40 lines"]
    assert code[25] == "  gone is gone, at least 40 lines"


def test_explain_names_the_page_only_where_it_shows_more(verdicts: Mapping[str, Verdict]) -> None:
    """The page is named unless the whole difference is shown or none was kept."""
    verdict = verdicts["regression"]
    case = verdict.cases[0]
    kernels = (KernelChange(name="gelu", before="mul 2", after="mul 3"), KernelChange(name="lost"))
    evidence = CaseEvidence(case_id=case.id, after=SideEvidence(), kernels=kernels)
    story = render_explanation(replace(verdict, evidence=(evidence,)), case, "out")

    assert "\nGenerated code: 2 kernels changed\n" in story
    assert "report.html" not in story
