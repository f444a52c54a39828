"""A changed definition in gate.yml is a case's first cause."""

from dataclasses import replace
from typing import Any

from gate.decide.evidence.definitions import compare_all, compare_definitions
from gate.decide.side_by_side import decide_side_by_side
from gate.decide.verdict import decide_verdict
from gate.records.cases import Case, Metric
from gate.records.codes import Code
from gate.records.run import Environment, Run
from gate.records.verdict import Reason
from tests.hosts import CPU_HOST
from tests.make import POLICY, PairedCase, Situation, decide, make_run, pair_up
from tests.words import describe_causes

LATENCY = Metric.COMPILED_LATENCY
CASE = Case(id="mlp/x", model="mlp", factory="m:f", definition="1")


def run_of(host: Environment, heads: tuple[Case, ...], bases: tuple[Case, ...] | None) -> Run:
    return make_run(cases=heads, environment=host, base=bases)


def test_every_key_that_differs_is_named() -> None:
    """Keys are compared, and those within arguments, options and settings; a missing one is "none"."""
    before = replace(CASE, arguments={"layers": 2, "sizes": [1, 2]}, options={"fast": True})
    after = replace(CASE, arguments={"layers": 4, "sizes": [1, 2]}, dynamic=True, node="tests/test_x.py::x")
    assert compare_definitions(before, after) == {
        "node": ("none", "tests/test_x.py::x"),
        "dynamic": ("none", "True"),
        "arguments.layers": ("2", "4"),
        "options.fast": ("True", "none"),
    }


def test_a_setting_that_one_side_lacks_is_the_default_there() -> None:
    """Of four settings two are equal or changed, and one side alone has the others."""
    before, after = {"same": "1", "changed": "2", "gone": "3"}, {"same": "1", "changed": "4", "new": "5"}
    assert compare_all(before, after) == {
        "changed": ("2", "4"),
        "gone": ("3", "default"),
        "new": ("default", "5"),
    }


def test_cases_of_the_base_are_found_by_their_id() -> None:
    """A run without a base has no cases of it."""
    assert run_of(CPU_HOST, (CASE,), (CASE,)).base_cases == {CASE.id: CASE}
    assert run_of(CPU_HOST, (CASE,), None).base_cases == {}


def test_argument_that_the_base_has_otherwise_is_the_cause() -> None:
    """The cause names the argument that changed, not a failed base."""
    run = pair_up(PairedCase(pairs=0, alone={LATENCY: (0.01,)}, base_definition="d0"))
    assert run.base is not None
    (head,), (base,) = run.cases, run.base.cases
    run = replace(
        run,
        cases=(replace(head, arguments={"layers": 4}),),
        base=replace(run.base, cases=(replace(base, arguments={"layers": 2}),)),
    )
    verdict = decide_side_by_side(run, POLICY)
    assert {row.reason for row in verdict.comparisons} == {Reason.STALE_DEFINITION}
    assert describe_causes(verdict) == [
        "The case is defined differently, so it is another program: arguments.layers 2 -> 4."
    ]
    assert verdict.causes[0].fact.code is Code.DEFINITION_CHANGED


def test_stored_baseline_of_another_definition_names_what_changed() -> None:
    """A baseline keeps a hash of the definition: inputs that differ are named, the checksum last."""
    situation = Situation(
        before={LATENCY: (0.01,) * 5},
        after={LATENCY: (0.02,) * 3},
        definition_after="d2",
        workload_before={"reference": "1", "inputs": "float32[8]"},
        workload_after={"reference": "2", "inputs": "float32[16]"},
    )
    (text,) = describe_causes(decide(situation))
    assert text.endswith("another program: inputs float32[8] -> float32[16], reference 1 -> 2.")


def test_definition_that_left_no_trace_is_the_cause() -> None:
    """A changed hash alone is a cause, without details."""
    situation = Situation(before={LATENCY: (0.01,) * 5}, after={LATENCY: (0.02,) * 3}, definition_after="d2")
    assert describe_causes(decide(situation)) == [
        "The case is defined differently, so it is another program."
    ]


def test_software_that_the_device_does_not_use_explains_nothing() -> None:
    """On a CPU another torch is a cause, and another triton is not."""
    run = pair_up(PairedCase(head={LATENCY: 0.02}))

    def list_codes(**changes: Any) -> list[Code]:
        verdict = decide_side_by_side(replace(run, environment=replace(run.environment, **changes)), POLICY)
        return [cause.fact.code for cause in verdict.causes]

    unused, used = list_codes(triton="3.8.0"), list_codes(triton="3.8.0", torch="2.14.0+cpu")
    assert unused[0] is Code.UNEXPLAINED
    assert Code.STACK_CHANGED not in unused
    assert used[0] is Code.STACK_CHANGED
    assert Code.UNEXPLAINED not in used


def test_base_that_nothing_is_compared_with_is_no_cause() -> None:
    """The base's definition is no cause of a change against stored values."""
    run = pair_up(PairedCase(pairs=0, alone={LATENCY: (0.02,) * 3}, base_definition="d0"))
    before = {LATENCY: (0.01, 0.0101, 0.0099, 0.0102, 0.0098)}
    stored = Situation(case_id="mlp/x", before=before).baseline
    verdict = decide_verdict(run, (stored,), POLICY)
    assert verdict.causes
    assert Code.DEFINITION_CHANGED not in {cause.fact.code for cause in verdict.causes}
