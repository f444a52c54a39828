"""Options of torch.compile that are set back on head: which default is the cause, and at what cost."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from gate.check.defaults import (
    _Prober,
    choose_metric,
    compute_change,
    find_worst,
    list_settable,
    probe_defaults,
)
from gate.check.measurer import LaneMeasurer
from gate.check.schedule import Pace, Slot, predict_pair_s
from gate.check.work import Unit, UnitResult
from gate.decide.constants import COMPILE_PAIR_SD, LIVE_PAIR_SD
from gate.decide.evidence.pairs import Pair
from gate.decide.explain.defaults import find_default, is_clear, note_defaults
from gate.decide.side_by_side import decide_side_by_side
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.events import Noted
from gate.records.run import Extent, Probe, Run, Trial
from gate.records.verdict import Outcome, Status
from gate.report.words.facts import write_note
from tests.lanes import FakeLanes, make_places
from tests.make import POLICY, make_change, make_failure, make_pair, make_row, make_run, make_verdict

NAME, PAIR_S, RUN_S = "a/x", 10.0, 2000.0
OPTIONS = tuple(f"inductor.option{number}" for number in range(8))
GROWN: dict[Metric, tuple[float, ...]] = {
    Metric.COMPILED_LATENCY: (0.013,),
    Metric.EAGER_LATENCY: (0.02,),
    Metric.GRAPH_BREAKS: (0.0,),
}
STEADY: dict[Metric, tuple[float, ...]] = {**GROWN, Metric.COMPILED_LATENCY: (0.01,)}


def make_measured(head: dict[Metric, tuple[float, ...]] = GROWN, **others: float) -> Run:
    """Six pairs in which head is 30 % slower, of two stacks with eight different defaults.

    ``others`` are calls of further cases in head, in seconds.
    """
    heads = {NAME: head}
    for name, latency_s in others.items():
        heads[f"{name}/x"] = {**STEADY, Metric.COMPILED_LATENCY: (latency_s,)}
    arms: list[Trial] = []
    for index in range(1, 7):
        fields = {"stages_s": {"rounds": PAIR_S / 2}}
        for name, samples in heads.items():
            arms += make_pair(name, index, {"samples": STEADY}, {"samples": samples}, **fields)
    run = make_run(*arms, base=make_run(*arms).cases)
    assert run.base is not None
    defaults = dict.fromkeys(OPTIONS, ("false", "true"))
    return replace(run, base=replace(run.base, defaults=defaults))


def open_lane(causes: Collection[str], broken: Collection[str] = ()) -> FakeLanes:
    """Head is slower unless all ``causes`` are set back, and fails with a ``broken`` option."""

    def measure(lane: str, unit: Unit) -> tuple[UnitResult, float]:
        if not set(broken).isdisjoint(unit.options):
            return UnitResult(failures=(make_failure(NAME),)), PAIR_S
        head = STEADY if set(causes) <= set(unit.options) else GROWN
        pair = make_pair(NAME, unit.index, {"samples": STEADY}, {"samples": head}, place=lane)
        return UnitResult(trials=pair), PAIR_S

    return FakeLanes(places=make_places(1), measure=measure)


def make_measurer(lanes: FakeLanes) -> LaneMeasurer:
    """A measurer that saves and shows nothing."""
    return LaneMeasurer(engine=lanes, save=lambda _: None, keep=lambda _: None, observe=lambda _: None)


@pytest.mark.parametrize(
    ("number", "measured", "undone"),
    [(0, 5, 5), (1, 6, 5), (2, 5, 4), (3, 6, 4), (4, 5, 4), (5, 6, 4), (6, 5, 3), (7, 6, 3)],
)
def test_the_one_default_that_is_the_cause_is_found(number: int, measured: int, undone: int) -> None:
    """All eight are tried, then first halves, then the last one until it has been tried twice."""
    run, cause = make_measured(), OPTIONS[number]
    probed = probe_defaults(make_measurer(open_lane([cause])), run, decide_side_by_side(run, POLICY), RUN_S)
    assert [len(probe.options) for probe in probed.probes] == [8, 4, 2, 1, 1, 1][:measured]
    assert [probe.options for probe in probed.probes].count((cause,)) == 2
    fact = find_default(probed)
    assert fact is not None
    assert (fact.names, fact.numbers["pairs"]) == ({cause: ("false", "true")}, undone)
    assert fact.numbers["change"] == pytest.approx(0.3)
    assert fact.numbers["left"] == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("device", "likely", "unlikely"),
    [("cpu", "inductor.cpp.simdlen", "inductor.triton.x"), ("cuda", "inductor.triton.x", "inductor.cpp.x")],
)
def test_options_of_other_devices_are_the_second_half(device: str, likely: str, unlikely: str) -> None:
    """One option concerns the device and seven do not: the second pair sets that one back alone."""
    run = make_measured()
    assert run.base is not None
    defaults = {f"{unlikely}{number}": ("false", "true") for number in range(7)} | {likely: ("false", "true")}
    environment = replace(run.environment, device_kind=device)
    run = replace(run, environment=environment, base=replace(run.base, defaults=defaults))
    probed = probe_defaults(make_measurer(open_lane([likely])), run, decide_side_by_side(run, POLICY), RUN_S)
    assert [len(probe.options) for probe in probed.probes] == [8, 1, 1]
    assert probed.probes[1].options == (likely,)


def test_options_of_other_devices_alone_are_halved() -> None:
    """Eight options of Triton on a CPU: four are set back in the second pair."""
    run, names = make_measured(), [f"inductor.triton.x{number}" for number in range(8)]
    assert run.base is not None
    run = replace(run, base=replace(run.base, defaults=dict.fromkeys(names, ("false", "true"))))
    lanes = open_lane(names[:1])
    probed = probe_defaults(make_measurer(lanes), run, decide_side_by_side(run, POLICY), RUN_S)
    assert [len(probe.options) for probe in probed.probes] == [8, 4, 2, 1, 1]


def test_the_cause_stands_first_in_the_verdict() -> None:
    """A measured cause comes before possible ones."""
    run = make_measured()
    probed = probe_defaults(
        make_measurer(open_lane(OPTIONS[2:3])), run, decide_side_by_side(run, POLICY), RUN_S
    )
    verdict = decide_side_by_side(probed, POLICY)
    assert verdict.causes[0].fact.code is Code.DEFAULT_CHANGED
    assert [fact.numbers["stays"] for fact in verdict.notes if fact.code is Code.DEFAULTS_DIFFER] == [0.0]


def test_a_change_that_stays_without_all_defaults_has_no_such_cause() -> None:
    """With all eight set back the change stays; that four remove it is chance."""
    all_back = Probe(case_id="a/x", metric=Metric.COMPILED_LATENCY, change=0.3, options=OPTIONS, left=0.3)
    half = replace(all_back, options=OPTIONS[:4], left=0.0)
    (note,) = note_defaults(replace(make_measured(), probes=(half, all_back)))
    assert note.numbers["stays"] == 1.0


@pytest.mark.parametrize(
    ("left", "named"),
    [((0.15, 0.1), 0.15), ((0.1, 0.15), 0.15), ((0.16, 0.1), None), ((0.1, 0.16), None)],
)
def test_a_default_undoes_half_of_the_change_each_time(
    left: tuple[float, float], named: float | None
) -> None:
    """Of 30 %, in both pairs; the pair with more of it left counts. Without a base there is no default."""
    first = Probe(case_id="a/x", metric=Metric.COMPILED_LATENCY, change=0.3, options=OPTIONS[:1])
    probed = replace(make_measured(), probes=tuple(replace(first, left=rest) for rest in left))
    fact = find_default(probed)
    assert (fact.numbers["left"] if fact else None) == named
    assert find_default(replace(probed, base=None)) is None


@pytest.mark.parametrize(("together", "named"), [(2, 2), (4, 3)])
def test_defaults_that_act_together_are_named(together: int, named: int) -> None:
    """If neither half removes the change, the cause is all of them: three are named, the rest is counted."""
    run = make_measured()
    probed = probe_defaults(
        make_measurer(open_lane(OPTIONS[:together])), run, decide_side_by_side(run, POLICY), RUN_S
    )
    fact = find_default(probed)
    assert fact is not None
    assert set(fact.names) == set(OPTIONS[:named])
    assert fact.numbers["more"] == together - named


def test_where_no_default_is_the_cause_one_pair_says_so() -> None:
    """If the change stays with all set back, one pair is enough."""
    run = make_measured()
    probed = probe_defaults(
        make_measurer(open_lane(["another"])), run, decide_side_by_side(run, POLICY), RUN_S
    )
    assert [probe.options for probe in probed.probes] == [OPTIONS]
    assert find_default(probed) is None
    (note,) = note_defaults(probed)
    assert (note.numbers["defaults"], note.numbers["stays"]) == (8, 1.0)


def test_an_option_with_which_head_fails_hides_no_other() -> None:
    """All eight and the last four fail; the cause among the first four is found."""
    run = make_measured()
    lanes = open_lane(OPTIONS[:1], OPTIONS[7:])
    fact = find_default(probe_defaults(make_measurer(lanes), run, decide_side_by_side(run, POLICY), RUN_S))
    assert fact is not None
    assert set(fact.names) == {OPTIONS[0]}


def test_where_head_fails_with_each_option_nothing_is_named() -> None:
    """If every pair fails no default is named."""
    run = make_measured()
    lanes = open_lane(OPTIONS[:1], OPTIONS)
    assert probe_defaults(make_measurer(lanes), run, decide_side_by_side(run, POLICY), RUN_S).probes == ()


def test_the_pairs_take_at_most_a_fifth_of_the_time_of_a_run() -> None:
    """Of 200 s four pairs of 10 s, of 45 s none."""
    run = make_measured()
    verdict = decide_side_by_side(run, POLICY)
    for run_s, pairs in ((200.0, 4), (45.0, 0)):
        assert len(probe_defaults(make_measurer(open_lane(OPTIONS[:1])), run, verdict, run_s).probes) == pairs


def test_the_case_that_got_worst_is_measured_again_and_no_other() -> None:
    """Of 30, 60 and 40 % it is the second; a unit is of its trials and its base alone."""
    run, units = make_measured(b=0.016, c=0.014), list[Unit]()
    lanes = open_lane(OPTIONS[:1])
    measure = lanes.measure

    def note(lane: str, unit: Unit) -> tuple[UnitResult, float]:
        units.append(unit)
        return measure(lane, unit)

    lanes.measure = note
    probe_defaults(make_measurer(lanes), run, decide_side_by_side(run, POLICY), RUN_S)
    assert units
    for unit in units:
        assert unit.run.base is not None
        assert [case.id for case in unit.run.cases] == [case.id for case in unit.run.base.cases] == ["b/x"]
        assert [trial.case_id for trial in unit.run.trials] == ["b/x"] * 12


@pytest.mark.parametrize("lost", [{"dies_s": {"GPU-1": 0.0}}, {"hangs": {"GPU-1"}}])
def test_a_lane_that_is_lost_leaves_no_probe(lost: dict[str, Any]) -> None:
    """Neither an answer without a result nor none is a pair."""
    run, lanes = make_measured(), replace(open_lane(OPTIONS[:1]), **lost)
    assert probe_defaults(make_measurer(lanes), run, decide_side_by_side(run, POLICY), RUN_S).probes == ()


def test_a_stop_keeps_the_run_and_the_pairs_so_far() -> None:
    """Ctrl-C in the second pair: the verdict keeps its ground, and a reader hears of it."""
    run, lanes, seen = make_measured(), open_lane(OPTIONS[:1]), list[str]()
    measure = lanes.measure

    def stop(lane: str, unit: Unit) -> tuple[UnitResult, float]:
        if len(lanes.asked) > 1:
            raise KeyboardInterrupt
        return measure(lane, unit)

    def observe(event: object) -> None:
        assert isinstance(event, Noted)
        seen.append(event.fact.code)

    lanes.measure = stop
    measurer = LaneMeasurer(engine=lanes, save=lambda _: None, keep=lambda _: None, observe=observe)
    probed = probe_defaults(measurer, run, decide_side_by_side(run, POLICY), RUN_S)
    assert probed == replace(run, probes=probed.probes)
    assert [probe.options for probe in probed.probes] == [OPTIONS]
    assert seen == [Code.PROBING, Code.TEXT]
    assert decide_side_by_side(probed, POLICY).outcome is Outcome.REGRESSION


def test_nothing_is_looked_for_where_nothing_regressed_or_lanes_share_the_work() -> None:
    """Nothing is tried without a regression, with one stack, or on a fleet."""
    same, run = make_measured(head=STEADY), make_measured()
    assert run.base is not None
    alike = replace(run, base=replace(run.base, defaults={}))
    for kept in (same, alike):
        verdict = decide_side_by_side(kept, POLICY)
        assert probe_defaults(make_measurer(open_lane(OPTIONS)), kept, verdict, RUN_S) == kept
    fleet = replace(open_lane(OPTIONS), places=make_places(2))
    assert probe_defaults(make_measurer(fleet), run, decide_side_by_side(run, POLICY), RUN_S) == run


@pytest.mark.parametrize(
    ("metric", "base", "head", "change"),
    [
        (Metric.DRIFT, -1.0, 4.0, 5.0),
        (Metric.GRAPH_BREAKS, 4.0, 6.0, 0.5),
        (Metric.GRAPH_BREAKS, 0.0, 2.0, 2.0),
    ],
)
def test_a_change_is_a_part_of_the_bases_value(
    metric: Metric, base: float, head: float, change: float
) -> None:
    """Drift is compared by the difference of its logarithms, and a count that was 0 by head's."""
    pair = make_pair(NAME, 1, {"samples": {metric: (base,)}}, {"samples": {metric: (head,)}})
    assert compute_change(metric, [Pair(base=pair[0], head=pair[1])]) == change


@pytest.mark.parametrize(
    ("worst", "calls", "expected"),
    [
        (Metric.WARM_SPEEDUP, (), Metric.COMPILED_LATENCY),
        (Metric.COLD_COMPILE_TIME, (1.021e6,), Metric.COMPILE_CALLS),
        (Metric.COLD_COMPILE_TIME, (1.02e6,), Metric.COLD_COMPILE_TIME),
        (Metric.COLD_COMPILE_TIME, (), Metric.COLD_COMPILE_TIME),
        (Metric.PEAK_MEMORY, (1.021e6,), Metric.PEAK_MEMORY),
    ],
)
def test_a_longer_compile_with_more_work_is_searched_by_its_calls(
    worst: Metric, calls: tuple[float, ...], expected: Metric
) -> None:
    """More than 2 % of a million; a speedup is searched by calls, and all else by itself."""
    arms = ({"samples": {Metric.COMPILE_CALLS: values}} for values in ((1e6,), calls))
    base, head = make_pair(NAME, 1, *arms)
    assert choose_metric(make_row(NAME, worst), [Pair(base=base, head=head)]) is expected


@pytest.mark.parametrize(
    ("metric", "change", "clear"),
    [
        (Metric.GRAPH_BREAKS, 0.0, False),
        (Metric.GRAPH_BREAKS, 0.01, True),
        (Metric.COMPILED_LATENCY, 4 * LIVE_PAIR_SD, True),
        (Metric.COLD_COMPILE_TIME, 4 * COMPILE_PAIR_SD, True),
        (Metric.COLD_COMPILE_TIME, 3.9 * COMPILE_PAIR_SD, False),
    ],
)
def test_which_change_is_looked_into(metric: Metric, change: float, *, clear: bool) -> None:
    """Any loss of a count, and of a time four standard deviations of a pair."""
    assert is_clear(metric, change) == clear


def test_what_pairs_do_not_show_is_not_looked_for() -> None:
    """Nothing is tried for a metric or a trial that no pair has."""
    verdict, same = decide_side_by_side(make_measured(), POLICY), make_measured(head=STEADY)
    assert probe_defaults(make_measurer(open_lane(OPTIONS)), same, verdict, RUN_S) == same
    assert compute_change(Metric.PEAK_MEMORY, []) is None


def test_a_change_within_a_pairs_noise_is_not_searched() -> None:
    """Pairs vary by 1.6 %, so half of 5 % is within the noise."""
    run = make_measured(head={**STEADY, Metric.COMPILED_LATENCY: (0.0105,)})
    verdict = decide_side_by_side(run, POLICY)
    assert verdict.outcome is Outcome.REGRESSION
    assert probe_defaults(make_measurer(open_lane(OPTIONS)), run, verdict, RUN_S) == run


def test_one_pair_names_no_default_for_a_time() -> None:
    """60 s are enough for one pair, which names a default for a count only."""
    run = make_measured()
    verdict = decide_side_by_side(run, POLICY)
    probed = probe_defaults(make_measurer(open_lane(OPTIONS[:1])), run, verdict, 60.0)
    (probe,) = probed.probes
    assert find_default(probed) is None
    assert find_default(replace(probed, probes=(replace(probe, metric=Metric.GRAPH_BREAKS),))) is not None


def test_sixty_defaults_are_listed() -> None:
    """Of 62 two are counted only."""
    run = make_measured()
    assert run.base is not None
    defaults = {f"inductor.option{number}": ("false", "true") for number in range(62)}
    (note,) = note_defaults(replace(run, base=replace(run.base, defaults=defaults)))
    assert (len(note.names), note.numbers["more"], note.numbers["defaults"]) == (60, 2, 62)


def test_counts_are_compared_by_their_values() -> None:
    """One pair shows that two additional graph breaks are gone."""
    run = make_measured(head={**STEADY, Metric.GRAPH_BREAKS: (2.0,)})

    def measure(lane: str, unit: Unit) -> tuple[UnitResult, float]:
        breaks = 0.0 if OPTIONS[5] in unit.options else 2.0
        head = {**STEADY, Metric.GRAPH_BREAKS: (breaks,)}
        pair = make_pair(NAME, unit.index, {"samples": STEADY}, {"samples": head}, place=lane)
        return UnitResult(trials=pair), 1.0

    lanes = FakeLanes(places=make_places(1), measure=measure)
    fact = find_default(probe_defaults(make_measurer(lanes), run, decide_side_by_side(run, POLICY), RUN_S))
    assert fact is not None
    assert (set(fact.names), fact.metrics, fact.numbers["pairs"]) == ({OPTIONS[5]}, (Metric.GRAPH_BREAKS,), 3)


def test_a_pair_of_counts_alone_takes_as_long_as_the_last() -> None:
    """Two sides of 5 s; nothing times its compile, and yet it compiles as any further one does."""
    counts = {"samples": {Metric.GRAPH_BREAKS: (0.0,)}}
    fields = {"stages_s": {"rounds": PAIR_S / 2}, "extent": Extent.COLD}
    run = make_run(*make_pair(NAME, 1, counts, counts, **fields))
    slot = Slot(case=run.cases[0], index=2, metrics=(Metric.GRAPH_BREAKS,))
    assert predict_pair_s(Pace(run.cases, run.trials), slot, "cpu") == PAIR_S


def test_what_can_be_set_back_is_a_plain_value_that_both_have() -> None:
    """Plain values of both releases can be set back, and a new switch can be turned off."""
    defaults = {
        "inductor.depth": ("2", "3"),
        "inductor.names": ('["a"]', '["b"]'),
        "dynamo.new_switch": ("", "true"),
        "dynamo.new_number": ("", "5"),
        "dynamo.gone": ("true", ""),
    }
    assert list_settable(defaults) == {"inductor.depth": "2", "dynamo.new_switch": "false"}


def test_defaults_that_changed_are_listed_before_options_that_one_release_lacks() -> None:
    """Changed defaults come before new options, although their names sort first, and those that are gone."""
    run = make_measured()
    assert run.base is not None
    gone, new = {"dynamo.b": ("1", "")}, {"dynamo.a": ("", "true"), "dynamo.d": ("", "5")}
    sides = {**gone, **new, "inductor.c": ("4", "8")}
    (note,) = note_defaults(replace(run, base=replace(run.base, defaults=sides)))
    assert note.names == {
        "inductor.c": ("4", "8"),
        "dynamo.a": ("none", "true"),
        "dynamo.d": ("none", "5"),
        "dynamo.b": ("1", "none"),
    }
    assert [*note.names] == ["inductor.c", "dynamo.a", "dynamo.d", "dynamo.b"]
    assert write_note(note) == (
        "4 options of torch.compile are not as in the old release (1 with another default, 2 new, 1 gone): "
        "inductor.c 4 -> 8, dynamo.a none -> true, dynamo.d none -> 5, dynamo.b 1 -> none."
    )


@pytest.mark.parametrize(
    ("rows", "worst"),
    [
        ([("a/x", 0.2, {}), ("b/x", 0.4, {})], "b/x"),
        ([("a/x", 0.2, {}), ("b/x", 0.4, {"decides": False})], "a/x"),
        ([("a/x", 0.2, {}), ("b/x", 0.4, {"status": Status.INCONCLUSIVE})], "a/x"),
        ([("a/x", 0.2, {"status": Status.UNCHANGED})], None),
        ([], None),
    ],
)
def test_the_worst_row_is_a_regression_that_decides(
    rows: list[tuple[str, float, dict[str, Any]]], worst: str | None
) -> None:
    """By how many thresholds it is worse."""
    compared = [
        make_row(name, Metric.COMPILED_LATENCY, change=make_change(change), **fields)
        for name, change, fields in rows
    ]
    row = find_worst(make_verdict(*compared, outcome=Outcome.REGRESSION))
    assert (row and row.case_id) == worst


@pytest.mark.parametrize(
    ("base", "head", "settable"),
    [
        ('"auto"', "true", '"auto"'),
        ("", "true", "false"),
        ("", "false", None),
        ("true", "", None),
        ("[1]", "[2]", None),
        ("{}", "3", None),
        ("2", "3", "2"),
    ],
)
def test_a_default_is_set_back_to_what_the_base_has(base: str, head: str, settable: str | None) -> None:
    """A new switch that is on, off; a list or a mapping stays."""
    assert list_settable({"option": (base, head)}) == ({"option": settable} if settable else {})


def test_a_metric_that_one_side_lacks_has_no_change() -> None:
    """Nor has one without pairs."""
    counted: dict[Metric, tuple[float, ...]] = {Metric.GRAPH_BREAKS: (1.0,)}
    for given in ("base", "head"):
        base, head = make_pair(NAME, 1, **{given: {"samples": counted}})
        assert compute_change(Metric.GRAPH_BREAKS, [Pair(base=base, head=head)]) is None
    assert compute_change(Metric.GRAPH_BREAKS, []) is None


@pytest.mark.parametrize("run_s", [0.0, RUN_S])
def test_without_time_or_a_measured_change_nothing_is_probed(run_s: float) -> None:
    """And nothing is said of it."""
    events: list[object] = []
    run = make_measured()
    verdict = decide_side_by_side(run, POLICY)
    if run_s:
        run = replace(run, trials=())
    measurer = replace(make_measurer(open_lane(OPTIONS[:1])), observe=events.append)
    assert probe_defaults(measurer, run, verdict, run_s) == run
    assert events == []


@pytest.mark.parametrize(
    ("first", "second", "chosen"),
    [
        (True, None, "first"),
        (False, None, "second"),
        (None, True, "second"),
        (None, False, "first"),
        (None, None, "first"),
    ],
)
def test_the_half_with_the_cause_is_chosen(first: bool | None, second: bool | None, chosen: str) -> None:
    """One with which head fails may hide it, if the other has not got it."""
    prober = Mock(_undoes={("first",): first, ("second",): second}.__getitem__)
    assert _Prober._choose(prober, ("first",), ("second",)) == (chosen,)


def test_a_probe_is_a_pair_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the next index; a pair with one arm is none."""
    run, lanes = make_measured(), open_lane(OPTIONS[:1])
    units: list[Unit] = []

    def measure_base_alone(lane: str, unit: Unit) -> tuple[UnitResult, float]:
        units.append(unit)
        base, _ = make_pair(NAME, unit.index, {"samples": STEADY}, place=lane)
        return UnitResult(trials=(base,)), PAIR_S

    probed = probe_defaults(make_measurer(lanes), run, decide_side_by_side(run, POLICY), RUN_S)
    assert [index for _, _, index in lanes.asked] == list(range(2, 2 + len(probed.probes)))
    monkeypatch.setattr(lanes, "measure", measure_base_alone)
    assert probe_defaults(make_measurer(lanes), run, decide_side_by_side(run, POLICY), RUN_S).probes == ()
    assert all(unit.paired for unit in units)
