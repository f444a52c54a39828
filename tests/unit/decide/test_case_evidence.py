"""The evidence of a case: kernels by operators, phases that add up, sources within bounds."""

from dataclasses import replace
from typing import Any

import pytest

from gate.decide.conclude.case_evidence import MAX_ALL_CHARS, add_traces, bound_sources, show_all, show_case
from gate.decide.evidence.compiles import count_words, name_operators
from gate.decide.evidence.gather import Evidence, Stored
from gate.decide.verdict import decide_verdict, screen_run
from gate.records.cases import Case, Metric
from gate.records.facts import FIRST_CALL, OTHER_PHASE
from gate.records.run import Baseline, Called, CodeIdentity, Extent, GraphBreak, Trial
from gate.records.verdict import CaseEvidence, KernelChange, SideEvidence, Status
from tests.make import POLICY, Situation, make_baseline, make_measured, make_row, make_stored


def make_evidence(*trials: Trial, baseline: Baseline | None = None, **fields: bool) -> Evidence:
    """Evidence of these trials and of at most one baseline of the same stack."""
    alike = {"same_host": True, "same_stack": True, "same_codegen": True, "same_definition": True, **fields}
    stored = (Stored(baseline=baseline, **alike),) if baseline else ()  # type: ignore[arg-type] # fields by name
    case = Case(id="a/b", model="a", factory="a:b")
    return Evidence(case=case, trials=trials, failures=(), values={}, stored=stored)


@pytest.mark.parametrize(
    ("kernel", "operators"),
    [
        ("cpp_fused_add_relu_3", "add_relu"),
        ("triton_poi_fused_gelu_0", "gelu"),
        ("cpp_fused_12", ""),
        ("extern_kernels_mm", ""),
    ],
)
def test_a_kernel_is_named_by_its_operators(kernel: str, operators: str) -> None:
    """A kernel's name has neither its number nor its backend."""
    assert name_operators(kernel) == operators


def test_words_of_operators_are_counted_over_kernels() -> None:
    """Each word counts once in each kernel."""
    kernels = ("cpp_fused_add_relu_3", "cpp_fused_add_0", "extern_kernels_mm")
    assert count_words(kernels) == {"add": 2, "relu": 1}


def test_sources_of_the_worst_case_are_kept_first() -> None:
    """Of two cases that each need three quarters of the room the first keeps its sources."""
    source = "x" * (MAX_ALL_CHARS * 3 // 4)
    mild, worst = (
        CaseEvidence(case_id=name, after=SideEvidence(), kernels=(KernelChange(name="k", after=source),))
        for name in ("mild", "worst")
    )
    shown = {evidence.case_id: evidence for evidence in bound_sources((mild, worst), first=("worst",))}
    assert shown["worst"] == worst
    assert (shown["mild"].kernels, shown["mild"].more_kernels) == ((), 1)


def test_light_trials_after_a_whole_one_hide_nothing_of_it() -> None:
    """Breaks, phases and caches are those of the last whole trial."""
    broken = GraphBreak(reason="print", location="a.py:1")
    blank = Trial(case_id="a/b", index=1)
    whole = replace(blank, graph_breaks=(broken,), phases_s={FIRST_CALL: 2.0, "dynamo": 1.0})
    cold = replace(blank, index=2, extent=Extent.COLD, phases_s={FIRST_CALL: 4.0, "dynamo": 3.0})
    light = replace(blank, index=3, extent=Extent.COLD)
    evidence = make_evidence(whole, cold, light)
    shown = show_case(evidence, {}, moved=False)
    assert evidence.fullest is whole
    assert shown.after.graph_breaks == (broken,)
    assert shown.after.phases_s == {"dynamo": 2.0, OTHER_PHASE: 1.0}


def test_a_case_without_a_trial_shows_nothing() -> None:
    """A case without a trial has no evidence."""
    assert show_case(make_evidence(), {}, moved=True) == CaseEvidence(case_id="a/b", after=SideEvidence())


def test_sources_of_the_case_that_changed_most_are_kept_first() -> None:
    """Of 400,000 characters two cases get twelve of their kernels of 16,000, and the third gets one."""
    before, after = ({f"kernel{n}": f"{side}{n}" for n in range(14)} for side in ("old", "new"))
    situations = [
        Situation(
            case_id=f"{name}/x",
            before={Metric.COMPILE_CALLS: (1e6,) * 5},
            after={Metric.COMPILE_CALLS: (calls,) * 3},
            code_before=CodeIdentity(digest="1", kernels=before),
            code_after=CodeIdentity(digest="2", kernels=after),
        )
        for name, calls in (("middle", 2e6), ("least", 1.5e6), ("most", 3e6))
    ]
    sources = dict.fromkeys((*before.values(), *after.values()), "x" * 8_000)
    run = replace(make_measured(*situations), sources=sources)
    shown = decide_verdict(run, make_stored(*situations), POLICY).evidence
    assert [(len(case.kernels), case.more_kernels) for case in shown] == [(12, 2), (1, 13), (12, 2)]


@pytest.mark.parametrize(("chars", "is_cut"), [(8_000, False), (8_001, True)])
def test_a_source_is_cut_after_8000_characters(chars: int, *, is_cut: bool) -> None:
    """A longer one says that it was cut."""
    sides = [CodeIdentity(digest=name, kernels={"k_0": name}) for name in ("before", "after")]
    baseline = make_baseline("a/b", {}, definition="d", identity=sides[0])
    evidence = make_evidence(Trial(case_id="a/b", index=1, identity=sides[1]), baseline=baseline)
    sources = {"before": "x", "after": "y" * chars}
    expected = KernelChange(name="k_0", before="x", after="y" * 8_000, is_cut=is_cut)
    assert show_case(evidence, sources, moved=True).kernels == (expected,)


def test_a_kernel_of_which_one_side_was_not_kept_is_not_shown_as_new() -> None:
    """A kernel whose earlier source was not kept is not called new; one that is gone has its name."""
    before = CodeIdentity(digest="1", kernels={"both_0": "b0", "gone_0": "g0", "left_0": "l0"})
    after = CodeIdentity(digest="2", kernels={"both_0": "b1", "new_1": "n1", "left_0": "l1"})
    baseline = replace(make_baseline("a/b", {}, definition="d"), identity=before)
    trial = Trial(case_id="a/b", index=1, identity=after)
    sources = {"b1": "x", "n1": "y", "g0": "z", "l0": "w"}
    shown = show_case(make_evidence(trial, baseline=baseline), sources, moved=True)
    assert sorted(shown.kernels, key=lambda kernel: kernel.name) == [
        KernelChange(name="both_0"),
        KernelChange(name="gone_0", before="z"),
        KernelChange(name="left_0"),
        KernelChange(name="new_1", after="y"),
    ]


def test_what_other_code_generation_does_not_move_is_shown_without_its_code() -> None:
    """Across instruction sets drift is compared; kernels and phases are not shown."""
    baseline = make_baseline("a/b", {Metric.DRIFT: (0.25,)}, definition="d")
    evidence = make_evidence(baseline=baseline, same_host=False, same_codegen=False)
    assert show_case(evidence, {}, moved=True).before == SideEvidence(values={Metric.DRIFT: (0.25,)})


MOVED: dict[str, Any] = {
    "before": {Metric.COMPILE_CALLS: (1e6,)},
    "after": {Metric.COMPILE_CALLS: (2e6,)},
    "code_before": CodeIdentity(digest="1", kernels={"add_0": "a"}),
    "code_after": CodeIdentity(digest="2", kernels={"add_0": "b"}),
}


@pytest.mark.parametrize(
    ("fields", "changes", "kernels"),
    [
        ({}, {}, 1),
        ({"status": Status.INCONCLUSIVE}, {}, 1),
        ({"status": Status.UNCHANGED}, {}, 0),
        ({"decides": False}, {}, 0),
        ({}, {"code_before": CodeIdentity(digest="1")}, 0),
        ({}, {"code_after": CodeIdentity(digest="2")}, 0),
    ],
)
def test_kernels_are_shown_of_a_case_that_moved(
    fields: dict[str, Any], changes: dict[str, Any], kernels: int
) -> None:
    """Something that decides of it may have moved, and both sides generated code."""
    situation = Situation(**{**MOVED, **changes})
    run = make_measured(situation)
    row = replace(make_row(situation.case_id, Metric.COMPILE_CALLS), **fields)
    (shown,) = show_all(run, screen_run(run, make_stored(situation), POLICY), [row])
    assert len(shown.kernels) == kernels


@pytest.mark.parametrize("moved", [True, False])
def test_calls_within_functions_are_shown_of_a_case_that_moved(*, moved: bool) -> None:
    """Of both sides, where both have them."""
    functions = [{"trace": Called(calls=1, within=calls)} for calls in (10, 30)]
    baseline = make_baseline("a/b", {Metric.COMPILE_CALLS: (10.0,)}, functions=functions[0])
    evidence = make_evidence(Trial(case_id="a/b", index=1, functions=functions[1]), baseline=baseline)
    before, after = show_case(evidence, {}, moved=moved).sides
    expected = ({"trace": 10}, {"trace": 30}) if moved else ({}, {})
    assert (before.calls_within, after.calls_within) == expected


def test_what_the_stored_side_compiled_is_shown_without_a_value() -> None:
    """Its breaks, phases and parts, though no value of it has a plot."""
    broken = GraphBreak(reason="print", location="a.py:1")
    baseline = make_baseline(
        "a/b", {}, graph_breaks=(broken,), phases_s={"dynamo": 1.0}, parts_s={"rows=1": 0.5}
    )
    before = show_case(make_evidence(baseline=baseline), {}, moved=False).before
    assert before == SideEvidence(graph_breaks=(broken,), phases_s={"dynamo": 1.0}, parts_s={"rows=1": 0.5})


def test_a_value_is_shown_with_five_digits() -> None:
    """No dot of a plot is read more exactly."""
    evidence = replace(make_evidence(), values={Metric.COMPILED_LATENCY: (0.012345678,)})
    assert show_case(evidence, {}, moved=False).after.values == {Metric.COMPILED_LATENCY: (0.012346,)}


def test_traces_stand_with_their_side() -> None:
    """Each side has its own traces; without a base there is one side."""
    trials = [
        Trial(case_id="a/b", index=1, trace="x.log"),
        Trial(case_id="a/b", index=1, arm="base", trace="y.log"),
        Trial(case_id="a/b", index=2),
    ]
    head = add_traces(CaseEvidence(case_id="a/b", after=SideEvidence()), trials[:1])
    assert head.after.traces == ("x.log",)
    alone = add_traces(CaseEvidence(case_id="a/b", after=SideEvidence()), trials)
    assert (alone.before, alone.after.traces) == (None, ("x.log",))
    both = add_traces(CaseEvidence(case_id="a/b", after=SideEvidence(), before=SideEvidence()), trials)
    assert both.before is not None
    assert (both.before.traces, both.after.traces) == (("y.log",), ("x.log",))


def test_parts_of_a_call_are_medians_and_at_most_fifty() -> None:
    """Of 0.1, 0.3 and 0.2 s the median is 0.2; of 60 parts 50 are kept."""
    parts = ({f"rows={row}": seconds for row in range(60)} for seconds in (0.1, 0.3, 0.2))
    trials = (
        Trial(case_id="a/b", index=index, parts_s=parts_s) for index, parts_s in enumerate(parts, start=1)
    )
    parts_s = show_case(make_evidence(*trials), {}, moved=False).after.parts_s
    assert parts_s == {f"rows={row}": 0.2 for row in range(50)}
