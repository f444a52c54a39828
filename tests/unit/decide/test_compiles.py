"""What both sides of a case compiled: whether it is the same code, with as much work."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.evidence.compiles import (
    Work,
    compare_work,
    is_code_changed,
    is_other_workload,
    is_tuned_otherwise,
    match_kernels,
    part_phases,
    runs_stored_code,
)
from gate.decide.evidence.gather import Evidence, gather_evidence
from gate.decide.judge.compare import add_questions
from gate.records.cases import Kind, Metric, Task
from gate.records.facts import FIRST_CALL, OTHER_PHASE
from gate.records.run import CodeIdentity
from tests.make import POLICY, Situation, make_measured, make_stored

CALLS, BREAKS, FALLBACKS = Metric.COMPILE_CALLS, Metric.GRAPH_BREAKS, Metric.EAGER_FALLBACKS
SAME, OTHER = CodeIdentity(digest="1"), CodeIdentity(digest="2")
WORKLOAD = {"inputs": "8", "parameters": "100", "settings": "{}", "runtime": "{}"}


def gather(**fields: Any) -> Evidence:
    """The evidence of one situation, with its questions."""
    situation = Situation(**fields)
    (evidence,) = gather_evidence(make_measured(situation), make_stored(situation))
    return add_questions(evidence, POLICY)


def gather_code(before: CodeIdentity | None, *after: CodeIdentity) -> Evidence:
    """The evidence of a stored code, where there is a baseline, and of that of each trial."""
    evidence = gather(
        before=None if before is None else {CALLS: (1e6,)},
        after={CALLS: (1e6,) * len(after)},
        code_before=before or SAME,
    )
    trials = zip(evidence.trials, after, strict=True)
    return replace(evidence, trials=tuple(replace(trial, identity=identity) for trial, identity in trials))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("1", ("1",), False),
        ("1", ("2",), True),
        ("1", ("2", "1"), False),
        ("1", ("2", ""), True),
        ("1", ("",), None),
        ("", ("1",), None),
        (None, ("1",), None),
    ],
)
def test_code_changed_where_no_trial_generated_what_is_stored(
    before: str | None, after: tuple[str, ...], *, expected: bool | None
) -> None:
    """It is unknown where a side does not know its code."""
    stored = None if before is None else CodeIdentity(digest=before)
    trials = (CodeIdentity(digest=digest) for digest in after)
    assert is_code_changed(gather_code(stored, *trials)) is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("x", ("x", "x"), False),
        ("x", ("x", "y"), True),
        ("x", ("y",), True),
        ("", ("x",), True),
        ("x", ("",), False),
        (None, ("x",), True),
        (None, ("",), False),
    ],
)
def test_code_is_tuned_otherwise_where_a_trial_chose_another_configuration(
    before: str | None, after: tuple[str, ...], *, expected: bool
) -> None:
    """Where nothing was tuned, nothing was tuned otherwise."""
    stored = None if before is None else CodeIdentity(digest="1", tuned=before)
    trials = (CodeIdentity(digest="1", tuned=tuned) for tuned in after)
    assert is_tuned_otherwise(gather_code(stored, *trials)) is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"inputs": "8"}, [{"inputs": "8"}, {"inputs": "8"}], False),
        ({"inputs": "8"}, [{"inputs": "8"}, {"inputs": "9"}], True),
        ({"inputs": "8"}, [{"parameters": "9"}], False),
        (None, [{"inputs": "9"}], False),
    ],
)
def test_a_workload_is_another_where_a_trial_differs_in_what_both_recorded(
    before: Mapping[str, str] | None, after: Sequence[Mapping[str, str]], *, expected: bool
) -> None:
    """What one side did not record is no difference, nor is a missing baseline."""
    evidence = gather(
        before=None if before is None else {CALLS: (1e6,)},
        after={CALLS: (1e6,) * len(after)},
        workload_before=before or {},
    )
    pairs = zip(evidence.trials, after, strict=True)
    trials = tuple(replace(trial, workload=workload) for trial, workload in pairs)
    assert is_other_workload(replace(evidence, trials=trials)) is expected


COUNTS = {BREAKS: (0.0, 0.0), FALLBACKS: (0.0, 0.0), Metric.UNIQUE_GRAPHS: (1.0, 1.0)}
STORED_CODE: Mapping[str, Any] = {
    "before": COUNTS,
    "after": COUNTS,
    "code_before": SAME,
    "code_after": SAME,
    "workload_before": WORKLOAD,
    "workload_after": WORKLOAD,
}
UNKNOWN = CodeIdentity(digest="")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"code_after": replace(SAME, calls={"extern_kernels.mm": 1})}, True),
        ({"kind": Kind.SHAPES}, False),
        ({"task": Task.TRAINING}, False),
        ({"before": None}, False),
        ({"code_after": OTHER}, False),
        ({"code_before": UNKNOWN, "code_after": UNKNOWN}, False),
        ({"workload_after": {**WORKLOAD, "inputs": "9"}}, False),
        ({"workload_after": {**WORKLOAD, "outputs": "9"}}, True),
        *(
            ({side: {key: value for key, value in WORKLOAD.items() if key != name}}, False)
            for name in WORKLOAD
            for side in ("workload_before", "workload_after")
        ),
        ({"after": {**COUNTS, Metric.UNIQUE_GRAPHS: (2.0, 2.0)}}, False),
        ({"code_after": replace(SAME, tuned="x")}, False),
        ({"after": {**COUNTS, BREAKS: (0.0, 1.0)}}, False),
        ({"after": {**COUNTS, FALLBACKS: (0.0, 1.0)}}, False),
        ({"before": {**COUNTS, BREAKS: ()}}, False),
        ({"before": {**COUNTS, FALLBACKS: ()}}, False),
        ({"code_after": replace(SAME, calls={"torch.ops.mine.op": 1})}, False),
    ],
)
def test_calls_run_the_stored_code_where_nothing_says_otherwise(
    changes: Mapping[str, Any], *, expected: bool
) -> None:
    """The same code, tuned alike, on the same workload, with no Python and no operator of its own."""
    assert runs_stored_code(gather(**{**STORED_CODE, **changes})) is expected


def test_code_that_one_of_two_trials_did_not_generate_is_not_the_stored_one() -> None:
    """One trial generated other code, or another configuration was tuned."""
    evidence = gather(**STORED_CODE)
    first, second = evidence.trials
    for identity in (OTHER, replace(SAME, tuned="x")):
        trials = (first, replace(second, identity=identity))
        assert not runs_stored_code(replace(evidence, trials=trials))


def measure_work(phases_before_s: Mapping[str, float], phases_s: Mapping[str, float]) -> Evidence:
    return gather(
        before={CALLS: (1e6,) * 3},
        after={CALLS: (1.1e6,) * 3},
        phases_before_s=phases_before_s,
        phases_s=phases_s,
    )


def test_work_is_compared_by_calls_and_processor_time() -> None:
    """10 % more calls, and 6 s and 2 s of CPU time where there were 3 s and 1 s."""
    evidence = measure_work({"cpu_self": 3.0, "cpu_children": 1.0}, {"cpu_self": 6.0, "cpu_children": 2.0})
    work = compare_work(evidence)
    assert (work.calls, work.processor) == (pytest.approx(math.log(1.1)), pytest.approx(math.log(2.0)))
    assert not work.counts


@pytest.mark.parametrize("lack", [{"same_host": False}, {"same_definition": False}])
def test_processor_time_counts_from_the_newest_baseline_of_this_host_and_definition(
    lack: dict[str, Any],
) -> None:
    """A newer baseline of another host or definition is passed over."""
    evidence = measure_work({"cpu_self": 3.0}, {"cpu_self": 6.0})
    (stored,) = evidence.stored
    other, older = (
        replace(stored, baseline=replace(stored.baseline, phases_s={"cpu_self": seconds}))
        for seconds in (1.0, 6.0)
    )
    other = replace(other, **lack)
    assert compare_work(replace(evidence, stored=(other,))).processor is None
    processor = compare_work(replace(evidence, stored=(other, stored, older))).processor
    assert processor == pytest.approx(math.log(2.0))


@pytest.mark.parametrize(
    ("before_s", "after_s"),
    [
        ({}, {"cpu_self": 6.0}),
        ({"cpu_self": 6.0}, {}),
        ({"cpu_children": 6.0}, {"cpu_self": 6.0}),
        ({"cpu_self": 0.0}, {"cpu_self": 6.0}),
    ],
)
def test_processor_time_that_a_side_lacks_is_not_compared(
    before_s: Mapping[str, float], after_s: Mapping[str, float]
) -> None:
    """Nothing is known where a side has no time of its own process, or zero."""
    assert compare_work(measure_work(before_s, after_s)).processor is None


def test_less_work_is_more_in_the_mirror() -> None:
    """Both changes have the other sign, and what is unknown stays unknown."""
    assert Work(calls=0.1, processor=-0.2, counts=True).mirror() == Work(
        calls=-0.1, processor=0.2, counts=True
    )
    assert Work(calls=0.1).mirror() == Work(calls=-0.1)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"add_0": "a"}, {"add_0": "a"}, ()),
        ({"add_0": "a"}, {"add_1": "a"}, ()),  # the same code under another number
        ({"add_0": "a"}, {"add_0": "b"}, (("add_0", "add_0"),)),
        ({"add_0": "a"}, {"add_1": "b"}, (("add_0", "add_1"),)),
        ({"add_0": "a"}, {"mul_0": "b"}, (("", "mul_0"), ("add_0", ""))),
        (
            {"add_0": "a", "add_1": "b"},
            {"add_1": "c", "add_2": "d"},
            (("add_1", "add_1"), ("add_0", "add_2")),
        ),
        ({"add_0": "a", "add_1": "b"}, {"add_2": "c"}, (("add_0", "add_2"), ("add_1", ""))),
        ({}, {"add_0": "a"}, (("", "add_0"),)),
    ],
)
def test_kernels_are_matched_by_code_then_by_name(
    before: Mapping[str, str], after: Mapping[str, str], expected: tuple[tuple[str, str], ...]
) -> None:
    """What differs is matched by its name, then by its name without the number, each kernel once."""
    assert match_kernels(before, after) == expected


@pytest.mark.parametrize(
    ("phases_s", "expected"),
    [
        (
            {FIRST_CALL: 10.0, "dynamo": 8.0, "aot_autograd": 4.0, "inductor": 3.0, "cpu_self": 9.0},
            {"dynamo": 4.0, "aot_autograd": 1.0, "inductor": 3.0, OTHER_PHASE: 2.0},
        ),
        (
            {
                FIRST_CALL: 12.0,
                "dynamo": 6.0,
                "aot_autograd": 3.0,
                "backward": 2.0,  # in no other phase, and with an Inductor of its own
                "inductor": 4.0,
                "code_generation": 3.0,
                "triton": 1.0,
                "garbage_collection": 0.5,
                "cudagraph_capture": 0.25,
            },
            {
                "dynamo": 2.5,
                "aot_autograd": 1.0,
                "inductor": 1.0,
                "code_generation": 2.0,
                "triton": 1.0,
                "garbage_collection": 0.5,
                "cudagraph_capture": 0.25,
                OTHER_PHASE: 3.75,
            },
        ),
        ({"dynamo": 3.0, "inductor": 2.0}, {"dynamo": 3.0, "inductor": 2.0}),
        ({"dynamo": 3.0, "backward": 2.0}, {"dynamo": 3.0}),
        (
            {FIRST_CALL: 2.0, "dynamo": 1.0, "aot_autograd": 3.0},
            {"dynamo": 0.0, "aot_autograd": 3.0, OTHER_PHASE: 0.0},
        ),
        ({FIRST_CALL: 3.0}, {}),
        ({}, {}),
    ],
)
def test_a_phase_has_the_seconds_of_no_phase_within_it(
    phases_s: Mapping[str, float], expected: Mapping[str, float]
) -> None:
    """The phases and what none accounts for add up to the first call, and none is less than zero."""
    assert part_phases(phases_s) == expected
