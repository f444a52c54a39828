"""One lane or several: which measures what, and what is repeated if one is lost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.check.measurer import LaneMeasurer
from gate.check.procedure import (
    PairLimit,
    check_against_base,
    check_against_baselines,
    check_pairs,
    settle_pairs,
)
from gate.check.rehearsal import Rehearsal
from gate.check.schedule import EXTENT_SHARES, Slot, plan_trial, want_whole
from gate.check.work import (
    REPEAT_SHARE,
    Answer,
    Queues,
    Unit,
    UnitResult,
    Waiting,
    choose_lane,
    join_sources,
    may_repeat,
)
from gate.decide.evidence.pairs import Pair
from gate.decide.judge.pairs import Screened
from gate.decide.suspects import Suspect
from gate.errors import InterruptedRunError, MachineError
from gate.records.cases import Case, Metric
from gate.records.codes import Code
from gate.records.events import (
    CaseFailed,
    Event,
    Noted,
    PairFinished,
    Progress,
    TrialFinished,
    TrialSkipped,
    TrialStarted,
)
from gate.records.facts import Fact, name_words
from gate.records.run import BASE_ARM, CANDIDATE_ARM, Extent, Pairing, Run, Trial
from gate.records.verdict import Outcome
from tests.lanes import FakeLanes, drop_places, list_places, make_places, rehearse_unit
from tests.make import POLICY

from .conftest import Subject, make_failure, make_pair, make_run, make_terms, make_trial

LATENCY = Metric.COMPILED_LATENCY
TRIAL_S, PAIR_S = 10.0, 20.0
# Of latencies alone: 40 % of a pair, and the first one compiles for 10 s, untimed.
FIRST_PAIR_S, NEXT_PAIR_S = 18.0, 8.0


def take_time(trial: Trial, seconds: float) -> Trial:
    return replace(trial, stages_s={"rounds": seconds})


def rehearse(subjects: Sequence[Subject], seconds: Mapping[str, float] | None = None) -> Rehearsal:
    """Measure what the subjects describe, in TRIAL_S or in the case's ``seconds``."""
    by_id, times_s = {subject.case.id: subject for subject in subjects}, seconds or {}

    def take_trial(slot: Slot) -> Trial:
        trial = make_trial(by_id[slot.case.id], slot.index)
        return take_time(trial, times_s.get(slot.case.id, TRIAL_S))

    def take_pair(slot: Slot) -> Pair:
        base, head = make_pair(by_id[slot.case.id], slot.index)
        return Pair(base=take_time(base, PAIR_S / 2), head=take_time(head, PAIR_S / 2))

    return Rehearsal(take_trial=take_trial, take_pair=take_pair)


def make_engine(
    lanes: int, subjects: Sequence[Subject], seconds: Mapping[str, float] | None = None, **fate: Any
) -> FakeLanes:
    rehearsal = rehearse(subjects, seconds)
    return FakeLanes(
        places=make_places(lanes), measure=lambda lane, unit: rehearse_unit(rehearsal, lane, unit), **fate
    )


def make_fleet(engine: FakeLanes, **changes: Any) -> LaneMeasurer:
    settings: dict[str, Any] = dict.fromkeys(("save", "keep", "observe"), lambda _: None)
    return LaneMeasurer(engine=engine, **(settings | changes))


def make_subjects(count: int, **changes: Any) -> list[Subject]:
    return [Subject(name=f"m{number}", **changes) for number in range(count)]


def plan(subjects: Sequence[Subject], trials: int = 1) -> Run:
    """A run without trials."""
    return replace(make_run(subjects), trials=(), trials_planned=trials, finished=False)


def measure(fleet: LaneMeasurer, run: Run) -> Run:
    return fleet.add_trials(run, want_whole(case.id for case in run.cases), run.trials_planned)


def need(name: str, more: int, *, later: bool = False) -> Suspect:
    return Suspect(case_id=f"{name}/x", metrics=(LATENCY,), more=more, later=later)


WORSE = [Subject(name="same"), Subject(name="slow", alone=({LATENCY: 0.012},) * 3, slower=0.2)]


@pytest.mark.parametrize("lanes", [1, 3])
def test_a_fleet_finds_what_a_lab_finds(lanes: int) -> None:
    """One and three lanes give the same trials, pairs and verdict."""
    terms = make_terms(make_run(WORSE))
    lab = rehearse(WORSE)
    alone = lab.add_trials(plan(WORSE), want_whole(subject.case.id for subject in WORSE), 1)
    expected = check_against_base(lab, replace(alone, finished=True), terms)
    fleet = make_fleet(make_engine(lanes, WORSE))
    checked = check_against_base(fleet, measure(fleet, plan(WORSE)), terms)
    assert expected.verdict.outcome is Outcome.REGRESSION
    assert checked.verdict.comparisons == expected.verdict.comparisons
    assert len(checked.run.trials) == len(expected.run.trials)
    if lanes == 1:
        assert drop_places(checked.run.trials) == list(expected.run.trials)
        assert checked.run.wall_s == expected.run.wall_s


def test_further_trials_on_a_fleet() -> None:
    """Without a base open cases get their further trials on the same lane."""
    subjects = [Subject(name="odd", alone=({LATENCY: 0.0106}, {}, {})), Subject(name="same")]
    terms = make_terms(make_run(subjects))
    fleet = make_fleet(make_engine(2, subjects))
    run = measure(fleet, replace(plan(subjects), base=None))
    checked = check_against_baselines(fleet, run, terms)
    expected = check_against_baselines(
        rehearse(subjects), replace(run, trials=tuple(drop_places(run.trials))), terms
    )
    assert checked.verdict.comparisons == expected.verdict.comparisons
    assert len(list_places(checked.run, "odd/x")) == 1


def test_every_case_stays_on_one_lane() -> None:
    """All first trials come first, then each lane repeats its own cases."""
    subjects = make_subjects(6)
    engine = make_engine(2, subjects)
    run = measure(make_fleet(engine), plan(subjects, trials=3))
    assert [index for _, _, index in engine.asked] == [1] * 6 + [2] * 6 + [3] * 6
    assert all(len(list_places(run, subject.case.id)) == 1 for subject in subjects)
    assert engine.now_s == 9 * TRIAL_S
    assert run.wall_s == engine.now_s


def test_each_lane_begins_its_own_cases_first() -> None:
    """Though the first of the plan is another's."""
    engine = make_engine(2, make_subjects(2))
    measure(make_fleet(engine), plan(make_subjects(2)[::-1]))
    assert engine.asked == [("GPU-1", "m0/x", 1), ("GPU-2", "m1/x", 1)]


def test_a_queue_gives_its_lane_what_comes_next() -> None:
    """Own cases before others', fresh ones before begun ones of a later rank, and of others' the next."""
    queues = Queues()
    for lane, rank, case_id, begun in (
        ("a", (1, 0), "begun of a", True),
        ("a", (0, 5), "second of a", False),
        ("a", (0, 4), "first of a", False),
        ("b", (0, 2), "second of b", False),
        ("b", (0, 1), "first of b", False),
        ("c", (0, 3), "of c", False),
        ("c", (2, 0), "begun of c", True),
    ):
        queues.put(lane, Waiting(rank=rank, case_id=case_id), begun=begun)
    assert [queues.has_fresh(lane) for lane in "abcd"] == [True, True, True, False]
    assert [queues.take("a"), queues.take("d"), queues.take("d")] == [
        "first of a",
        "first of b",
        "second of b",
    ]
    assert [queues.take("b"), queues.take("c"), queues.take("b"), queues.take("c")] == [
        *("of c", "second of a", None, "begun of c"),
    ]
    queues.put("a", Waiting(rank=(0, 6), case_id="third of a"), begun=False)
    assert queues.drop("a") == ["begun of a", "third of a"]
    assert [queues.take("a"), queues.take("d")] == [None, None]


def test_an_idle_lane_begins_what_another_has_no_time_for() -> None:
    """The lane of a case as long as all others gets no other case."""
    subjects = make_subjects(10)
    long = subjects[0].case.id
    engine = make_engine(2, subjects, {long: 90.0})
    run = measure(make_fleet(engine), plan(subjects))
    assert engine.now_s <= 90.0 + TRIAL_S
    assert len([trial for trial in run.trials if trial.place == list_places(run, long)[0]]) <= 2


def test_a_missing_lane_moves_only_its_own_cases() -> None:
    """Without one card the other cards keep their cases."""
    lanes, names = [f"GPU-{number}" for number in range(8)], [f"m{number}/x" for number in range(400)]
    before = {name: choose_lane(name, lanes) for name in names}
    after = {name: choose_lane(name, lanes[1:]) for name in names}
    assert all(after[name] == lane for name, lane in before.items() if lane != lanes[0])
    assert all(30 < sum(lane == home for home in before.values()) < 70 for lane in lanes)


def test_pairs_for_later_go_to_idle_lanes() -> None:
    """The call ends with its own pair; the other pair goes on and counts in the next call."""
    subjects = make_subjects(2)
    engine = make_engine(2, subjects)
    fleet = make_fleet(engine)
    run = fleet.add_pairs(plan(subjects), [need("m0", 1), need("m1", 2, later=True)], math.inf)
    assert (run.pair_counts["m0/x"], run.pair_counts["m1/x"]) == (1, 0)
    run = fleet.add_pairs(run, [need("m1", 2)], math.inf)
    assert run.pair_counts["m1/x"] == 2
    assert engine.now_s == FIRST_PAIR_S + NEXT_PAIR_S
    assert len(list_places(run, "m1/x")) == 1


@pytest.mark.parametrize(
    ("name", "places", "lane"),
    [
        ("m0", ["GPU-1"], "GPU-1"),
        ("m0", ["GPU-2"], "GPU-2"),
        ("m1", ["GPU-1"], "GPU-1"),
        ("m0", ["GPU-2", "GPU-1"], "GPU-1"),
        ("m1", ["GPU-1", "GPU-2"], "GPU-1"),
        ("m0", ["GPU-9"], "GPU-1"),
        ("m1", ["GPU-9"], "GPU-2"),
        ("m1", [], "GPU-2"),
    ],
)
def test_pairs_prefer_the_lane_of_the_trial(name: str, places: list[str], lane: str) -> None:
    """It has the caches, the first of two as well; without such a lane a case is where it would begin."""
    subjects = make_subjects(2)
    assert [choose_lane(subject.case.id, make_places(2)) for subject in subjects] == ["GPU-1", "GPU-2"]
    engine = make_engine(2, subjects)
    trials = [
        replace(make_trial(Subject(name=name), index), place=place)
        for index, place in enumerate(places, start=1)
    ]
    run = make_fleet(engine).add_pairs(
        replace(plan(subjects), trials=tuple(trials)), [need(name, 2)], math.inf
    )
    assert engine.asked == [(lane, f"{name}/x", 1), (lane, f"{name}/x", 2)]
    assert run.pair_counts[f"{name}/x"] == 2


def test_pairs_wait_for_no_busy_lane() -> None:
    """Of two cases with trials on one lane the other lane takes one."""
    subjects = make_subjects(2)
    trials = tuple(replace(make_trial(subject, 1), place="GPU-2") for subject in subjects)
    engine = make_engine(2, subjects)
    needs = [need(subject.name, 2) for subject in subjects]
    make_fleet(engine).add_pairs(replace(plan(subjects), trials=trials), needs, math.inf)
    assert engine.now_s == FIRST_PAIR_S + NEXT_PAIR_S
    assert engine.asked[:2] == [("GPU-2", "m0/x", 1), ("GPU-1", "m1/x", 1)]


def lose(subjects: Sequence[Subject], lane: str, when_s: float, **fate: Any) -> tuple[FakeLanes, list[Event]]:
    return make_engine(2, subjects, dies_s={lane: when_s}, **fate), []


def test_what_a_lost_lane_had_begins_anew() -> None:
    """Both trials of a lost lane's case come from the other lane, whenever it was lost."""
    subjects = make_subjects(4)
    home = {subject.case.id: choose_lane(subject.case.id, make_places(2)) for subject in subjects}
    lane = home["m0/x"]
    engine, events = lose(subjects, lane, 2 * TRIAL_S + 1)
    saved: list[Run] = []
    fleet = make_fleet(engine, save=saved.append, observe=events.append)
    run = measure(fleet, plan(subjects, trials=3))
    (other,) = set(engine.places) - {lane}
    assert {trial.place for trial in run.trials} == {other}
    keys = sorted((trial.case_id, trial.index) for trial in run.trials)
    assert keys == [(subject.case.id, index) for subject in subjects for index in (1, 2, 3)]
    assert run.failures == ()
    (gone,) = [event.fact for event in events if isinstance(event, Noted)]
    assert (gone.code, gone.name("lane"), gone.name("reason")) == (
        Code.LANE_GONE,
        f"{lane} on host",
        "the host is gone",
    )
    assert run.lanes == (gone,)
    assert saved[-1] == run


def test_what_a_lost_lane_cost() -> None:
    """The event counts 55 s of work, with earlier trials of 10 and 30 s."""
    subjects = make_subjects(3)
    lane = choose_lane("m0/x", make_places(1))
    engine = make_engine(2, subjects, {"m1/x": 30.0}, dies_s={lane: 55.0})
    first = replace(
        plan(subjects, trials=3),
        trials=tuple(
            replace(take_time(make_trial(subject, 1), 30.0 if subject.name == "m1" else 10.0), place=lane)
            for subject in subjects
        ),
    )
    events: list[Event] = []
    run = measure(make_fleet(engine, observe=events.append), first)
    (gone,) = run.lanes
    assert sorted(gone.cases) == sorted({subject.case.id for subject in subjects})
    assert gone.numbers == {"lost_s": 10.0 + 30.0 + 10.0 + 55.0}


def test_a_case_that_waits_on_a_lane_that_is_lost_had_nothing_to_lose() -> None:
    """The lane was at work on one of two: that one alone is named, and what is kept says so at once."""
    subjects = make_subjects(4)
    home = {subject.name: choose_lane(subject.case.id, make_places(2)) for subject in subjects}
    lane = max(home.values(), key=[*home.values()].count)
    engine, kept = make_engine(2, subjects, dies_s={lane: 1.0}), list[Run]()
    run = measure(make_fleet(engine, keep=lambda make_run: kept.append(make_run())), plan(subjects))
    (gone,) = run.lanes
    assert gone.cases == (engine.asked[[asked for asked, _, _ in engine.asked].index(lane)][1],)
    assert (kept[0].lanes, kept[0].trials) == ((gone,), ())


def test_a_lane_is_lost_as_it_idles_and_another_never_opened() -> None:
    """The run records both lanes, and repeats nothing."""
    subjects = make_subjects(2)
    # Both cases are at home on the third lane, and the first one takes one of them.
    answers = [Answer(lane="GPU-2", why="the host is gone"), Answer(lane="4 on b", why="no room")]

    class Telling(FakeLanes):
        def wait(self, limit_s: float) -> Answer | None:
            return answers.pop() if answers else super().wait(limit_s)

    rehearsal = rehearse(subjects)
    engine = Telling(places=make_places(3), measure=lambda lane, unit: rehearse_unit(rehearsal, lane, unit))
    run = measure(make_fleet(engine), plan(subjects, trials=2))
    assert [(fact.code, fact.name("lane"), fact.numbers, fact.cases) for fact in run.lanes] == [
        (Code.LANE_LEFT_OUT, "4 on b", {}, ()),
        (Code.LANE_GONE, "GPU-2 on host", {"lost_s": 0.0}, ()),
    ]
    assert len(run.trials) == 4


def test_a_lane_that_opens_later_joins() -> None:
    """A lane that opens later takes cases that no other began, and is a place of the run."""
    subjects = make_subjects(6)

    class Growing(FakeLanes):
        def wait(self, limit_s: float) -> Answer | None:
            if len(self.places) < 2:
                self.places = make_places(2)
                return None
            return super().wait(limit_s)

    rehearsal = rehearse(subjects)
    engine = Growing(places=make_places(1), measure=lambda lane, unit: rehearse_unit(rehearsal, lane, unit))
    run = measure(make_fleet(engine, patience_s=1000.0), plan(subjects, trials=2))
    assert engine.now_s == 6 * TRIAL_S
    assert sorted(trial.place for trial in run.trials) == ["GPU-1"] * 6 + ["GPU-2"] * 6
    assert run.places == make_places(2)
    assert all(len(list_places(run, subject.case.id)) == 1 for subject in subjects)


def test_a_run_is_kept_after_each_unit() -> None:
    """Whoever kills the lab loses one at most."""
    kept: list[Run] = []
    fleet = make_fleet(make_engine(1, make_subjects(2)), keep=lambda make_run: kept.append(make_run()))
    run = measure(fleet, plan(make_subjects(2)))
    assert [len(each.trials) for each in kept] == [1, 2]
    assert kept[-1].trials == run.trials


def test_many_lanes_begin_with_what_takes_longest() -> None:
    """Several lanes begin with the longest case; one lane keeps the plan's order."""
    cases = tuple(Case(id=f"m{number}/x", model="m", expected_s=1.0 + number) for number in range(9))
    for lanes, pick in ((1, min), (2, max)):
        engine = FakeLanes(places=make_places(lanes), measure=take_seconds)
        measure(make_fleet(engine), replace(plan([]), cases=cases))
        home = {case.id: choose_lane(case.id, engine.places) for case in cases}
        first = {lane: pick(case_id for case_id in home if home[case_id] == lane) for lane in engine.places}
        assert {lane: case_id for lane, case_id, _ in reversed(engine.asked)} == first


def test_what_comes_late_of_a_lost_lane_is_dropped() -> None:
    """A lost lane's late result is dropped, since the case began elsewhere."""
    subjects = make_subjects(6)
    engine, _ = lose(subjects, choose_lane("m0/x", make_places(2)), 1.0, late_s=3.0)
    run = measure(make_fleet(engine), plan(subjects))
    assert sorted(trial.case_id for trial in run.trials) == [subject.case.id for subject in subjects]
    assert len({trial.place for trial in run.trials}) == 1


def test_a_silent_lane_is_given_up() -> None:
    """A lane that is silent for 100 s gets nothing more, though another one begins a trial meanwhile."""
    subjects = make_subjects(4)
    silent = choose_lane("m0/x", make_places(2))
    engine = make_engine(2, subjects, {subject.case.id: 60.0 for subject in subjects}, hangs={silent})
    run = measure(make_fleet(engine, patience_s=100.0), plan(subjects))
    assert len(run.trials) == 4
    assert [lane for lane, _, _ in engine.asked].count(silent) == 1
    assert engine.ended == [silent]
    assert [fact.numbers["lost_s"] for fact in run.lanes] == [100.0]
    assert engine.now_s == 4 * 60.0


def test_a_case_that_takes_three_lanes_with_it_has_failed() -> None:
    """It fails, and the other cases are measured."""
    subjects = make_subjects(5)
    rehearsal, dead = rehearse(subjects), {"m2/x"}

    class Deadly(FakeLanes):
        def submit(self, lane: str, unit: Unit) -> None:
            if unit.run.cases[0].id in dead:
                self.dies_s[lane] = self.now_s + 1.0
            super().submit(lane, unit)

    engine = Deadly(places=make_places(4), measure=lambda lane, unit: rehearse_unit(rehearsal, lane, unit))
    run = measure(make_fleet(engine), plan(subjects, trials=2))
    (failure,) = run.failures
    assert (failure.case_id, failure.trial, failure.fact.code, failure.fact.numbers) == (
        "m2/x",
        1,
        Code.LANE_LOST,
        {"losses": 3},
    )
    assert len(run.trials) == 8
    assert [lane for lane, case_id, _ in engine.asked if case_id == "m2/x"] != []
    assert run.finished


def test_a_case_may_lose_two_lanes() -> None:
    """The third attempt counts."""
    subjects = make_subjects(1)
    first, second = sorted(make_places(3), key=lambda lane: lane == choose_lane("m0/x", make_places(3)))[1:]
    engine = make_engine(3, subjects, dies_s=dict.fromkeys((first, second), 1.0))
    run = measure(make_fleet(engine), plan(subjects))
    assert (len(run.trials), run.failures) == (1, ())


def test_without_a_lane_the_run_is_saved_and_stops() -> None:
    """The run can be continued on other lanes: begun cases start anew, finished ones stay."""
    subjects = make_subjects(4)
    engine = make_engine(1, subjects, dies_s={"GPU-1": 5.5 * TRIAL_S})
    saved: list[Run] = []
    with pytest.raises(MachineError, match="no lane is left"):
        measure(make_fleet(engine, save=saved.append), plan(subjects, trials=2))
    assert (len(saved[-1].trials), saved[-1].finished) == (5, False)
    fresh = make_engine(2, subjects)
    fresh.places = {f"other-{name}": place for name, place in fresh.places.items()}
    run = measure(make_fleet(fresh), saved[-1])
    assert len(run.trials) == 8
    assert list_places(run, "m0/x") == ["GPU-1"]
    assert all(len(list_places(run, subject.case.id)) == 1 for subject in subjects)
    assert "m0/x" not in {case_id for _, case_id, _ in fresh.asked}


def test_a_lane_may_be_lost_in_a_pair_for_later() -> None:
    """The case begins anew in the call that needs it."""
    subjects = make_subjects(2)
    engine = make_engine(2, subjects)
    fleet = make_fleet(engine)
    run = fleet.add_pairs(plan(subjects), [need("m0", 1), need("m1", 1, later=True)], math.inf)
    lane = next(lane for lane, case_id, _ in engine.asked if case_id == "m1/x")
    other = next(name for name in engine.places if name != lane)
    engine = make_engine(2, subjects, dies_s={lane: 1.0})
    fleet = make_fleet(engine)
    run = fleet.add_pairs(plan(subjects), [need("m0", 3), need("m1", 1, later=True)], math.inf)
    run = fleet.add_pairs(run, [need("m1", 1)], math.inf)
    assert (run.pair_counts["m0/x"], run.pair_counts["m1/x"]) == (3, 1)
    assert {trial.place for trial in run.trials} == {other}


def test_a_pair_for_later_counts_in_any_call() -> None:
    """A pair that ends while trials are measured counts; its case waits for its trial."""
    subjects = make_subjects(2)
    engine = make_engine(2, subjects)
    fleet = make_fleet(engine)
    run = fleet.add_pairs(plan(subjects), [need("m0", 1), need("m1", 1, later=True)], math.inf)
    run = measure(fleet, run)
    alone = [trial for trial in run.trials if trial.pairing is Pairing.ALONE]
    assert [run.pair_counts[subject.case.id] for subject in subjects] == [1, 1]
    assert sorted(trial.case_id for trial in alone) == ["m0/x", "m1/x"]


def test_pairs_for_later_end_or_are_lost_independently() -> None:
    """While another case's trials are measured one pair ends and one lane is lost."""
    subjects = make_subjects(3)
    needs = [need("m0", 1), need("m1", 1, later=True), need("m2", 1, later=True)]

    def measure_slow(lane: str, unit: Unit) -> tuple[UnitResult, float]:
        part, seconds = rehearse_unit(rehearse(subjects), lane, unit)
        note = Fact(code=Code.TEXT, names=name_words(text=f"on {lane}"))
        slow = unit.run.cases[0].id != "m0/x"
        return replace(part, notes=(note,)), seconds + slow

    def assign_lanes(**fate: Any) -> tuple[FakeLanes, dict[str, str]]:
        engine = FakeLanes(places=make_places(3), measure=measure_slow, **fate)
        fleet = make_fleet(engine, observe=events.append)
        run = fleet.add_pairs(plan(subjects), needs, math.inf)
        fleet.add_trials(run, want_whole(["m0/x"]), 2)
        return engine, {case_id: lane for lane, case_id, _ in engine.asked}

    events: list[Event] = []
    _, lanes = assign_lanes()
    assert {event.fact.name("text") for event in events if isinstance(event, Noted)} == {
        f"on {lane}" for lane in lanes.values()
    }
    engine, _ = assign_lanes(dies_s={lanes["m2/x"]: FIRST_PAIR_S + 0.5})
    assert [case_id for _, case_id, _ in engine.asked].count("m2/x") == 1


def fail_pair(lane: str, unit: Unit) -> tuple[UnitResult, float]:
    """The first case's second pair fails."""
    case_id = unit.run.cases[0].id
    part, seconds = rehearse_unit(rehearse(make_subjects(2)), lane, unit)
    if (case_id, unit.index) == ("m0/x", 2):
        return UnitResult(failures=(make_failure(Subject(name="m0"), 2),), notes=()), seconds
    return part, seconds


def test_a_case_that_fails_gets_nothing_more() -> None:
    """A failed case gets no pair or trial, and the events report what came."""
    subjects, events = make_subjects(2), list[Event]()
    engine = FakeLanes(places=make_places(1), measure=fail_pair)
    fleet = make_fleet(engine, observe=events.append)
    run = fleet.add_pairs(plan(subjects), [need("m0", 3), need("m1", 1)], math.inf)
    assert (run.pair_counts["m0/x"], run.pair_counts["m1/x"], len(run.failures)) == (1, 1, 1)
    assert fleet.add_pairs(run, [need("m0", 2)], math.inf).trials == run.trials
    kinds = [type(event) for event in events]
    assert kinds.count(PairFinished) == 2
    assert kinds.count(CaseFailed) == 1
    assert kinds.count(TrialStarted) == 3


def test_only_a_case_that_failed_in_head_gets_no_further_trial() -> None:
    """A case that failed in the base alone is measured, for head's limits."""
    subjects = make_subjects(2)
    failures = tuple(
        replace(make_failure(subject, 1), arm=arm)
        for subject, arm in zip(subjects, (CANDIDATE_ARM, BASE_ARM), strict=True)
    )
    fleet = make_fleet(make_engine(1, subjects))
    run = measure(fleet, replace(plan(subjects), failures=failures))
    assert [trial.case_id for trial in run.trials] == ["m1/x"]


def test_a_trial_that_fails_ends_its_case() -> None:
    """The other case gets both trials."""
    subjects, events = make_subjects(2), list[Event]()

    def measure_first(lane: str, unit: Unit) -> tuple[UnitResult, float]:
        part, seconds = rehearse_unit(rehearse(subjects), lane, unit)
        failure = (make_failure(subjects[0], 1),) if unit.run.cases[0].id == "m0/x" else ()
        return replace(part, failures=failure), seconds

    engine = FakeLanes(places=make_places(2), measure=measure_first)
    run = measure(make_fleet(engine, observe=events.append), plan(subjects, trials=2))
    assert [trial.case_id for trial in run.trials].count("m1/x") == 2
    assert [trial.case_id for trial in run.trials].count("m0/x") == 1
    finished = [event.progress for event in events if isinstance(event, TrialFinished)]
    assert [(progress.done, progress.total) for progress in finished] == [(2, 3), (3, 3)]
    assert finished[-1].left_s == 0.0


def test_no_slot_is_begun_that_would_end_too_late() -> None:
    """A trial beyond the budget and a pair beyond its limit are skipped, on a fleet as in a lab."""
    subjects, events = make_subjects(2), list[Event]()
    engine = make_engine(1, subjects)
    fleet = make_fleet(engine, observe=events.append)
    run = measure(fleet, plan(subjects))
    wanted, budget_s = want_whole(["m0/x", "m1/x"]), run.wall_s + TRIAL_S
    extended = replace(fleet, budget_s=budget_s).add_trials(run, wanted, 2)
    assert [(trial.case_id, trial.index) for trial in extended.trials[2:]] == [("m0/x", 2)]
    rehearsed = replace(rehearse(subjects), budget_s=budget_s).add_trials(run, wanted, 2)
    assert drop_places(rehearsed.trials) == drop_places(extended.trials)
    paired = fleet.add_pairs(extended, [need("m0", 2)], extended.wall_s + 1.0)
    assert paired.trials == extended.trials
    # The second pair, which finds its code, would end in time: it is none without the first.
    in_time_s = run.wall_s + (FIRST_PAIR_S + NEXT_PAIR_S) / 2
    assert rehearse(subjects).add_pairs(run, [need("m0", 2)], in_time_s).trials == run.trials
    skipped = [event for event in events if isinstance(event, TrialSkipped)]
    slots = [(slot.case_id, slot.index, slot.paired) for slot in skipped]
    assert slots == [("m1/x", 2, False), ("m0/x", 1, True)]


def test_a_rehearsed_first_pair_that_finds_its_code_takes_no_longer() -> None:
    """Nothing is compiled untimed."""
    subjects = make_subjects(1)
    run = measure(make_fleet(make_engine(1, subjects)), plan(subjects))
    for unchanged_code, seconds in ((False, FIRST_PAIR_S), (True, NEXT_PAIR_S)):
        suspect = replace(need("m0", 1), unchanged_code=unchanged_code)
        paired = rehearse(subjects).add_pairs(run, [suspect], math.inf)
        assert paired.wall_s - run.wall_s == seconds


def test_a_unit_has_what_its_case_needs() -> None:
    """A unit has the case's trials, both definitions, the time left, and whether it may repeat a trial."""
    subjects = make_subjects(2)
    units: list[Unit] = []

    def remember(lane: str, unit: Unit) -> tuple[UnitResult, float]:
        units.append(unit)
        return rehearse_unit(rehearse(subjects), lane, unit)

    engine = FakeLanes(places=make_places(1), measure=remember)
    fleet = make_fleet(engine, budget_s=500.0)
    begun = make_trial(Subject(name="m1"), 2)
    repeated = replace(begun, conditions=replace(begun.conditions, repeated=True))
    run = measure(fleet, plan(subjects))
    fleet.add_trials(replace(run, trials=(*run.trials, repeated)), want_whole(["m1/x"]), 3)
    check_pairs(replace(fleet, budget_s=math.inf), run, POLICY, PairLimit(end_s=60.0))
    first, _, second, *others = units
    assert [case.id for case in first.run.cases] == ["m0/x"]
    assert first.run.base is not None
    assert [case.id for case in first.run.base.cases] == ["m0/x"]
    assert (first.limit_s, first.repeats, second.repeats) == (500.0, True, False)
    assert [len(unit.run.trials) for unit in others[:1]] == [1]
    assert others[0].paired


def test_trials_of_two_places_begin_anew() -> None:
    """A case with trials of two cards is measured anew."""
    subjects = make_subjects(1)
    first, second = (replace(make_trial(subjects[0], index), place=f"GPU-{index}") for index in (1, 2))
    run = replace(plan(subjects, trials=3), trials=(first, second))
    measured = measure(make_fleet(make_engine(2, subjects)), run)
    assert [trial.index for trial in measured.trials] == [1, 2, 3]
    assert len(list_places(measured, "m0/x")) == 1


LONG = Case(id="long/x", model="long", expected_s=20.0)
SHORT = Case(id="short/x", model="short", expected_s=10.0)


def take_seconds(lane: str, unit: Unit) -> tuple[UnitResult, float]:
    """A whole trial takes three times the expected time, a cold process alone 5 s."""
    (case,) = unit.run.cases
    extent = plan_trial(unit.metrics, unit.run.trials, "cpu").extent
    seconds = 3 * case.expected_s if extent is Extent.WHOLE else 5.0
    trial = Trial(case_id=case.id, index=unit.index, extent=extent, stages_s={"rounds": seconds}, place=lane)
    return UnitResult(trials=(trial,)), seconds


def list_progress(events: Sequence[Event]) -> list[Progress]:
    return [
        event.progress for event in events if isinstance(event, (TrialStarted, TrialFinished, PairFinished))
    ]


def test_time_that_is_left() -> None:
    """The estimate is the expected time, then the measured one; other cases are scaled alike."""
    events: list[Event] = []
    engine = FakeLanes(places=make_places(1), measure=take_seconds)
    run = replace(plan([]), cases=(SHORT, LONG), trials_planned=2)
    run = measure(make_fleet(engine, observe=events.append), run)
    left = [(progress.done, progress.total, progress.left_s) for progress in list_progress(events)]
    assert left[:4] == [(0, 4, 60.0), (1, 4, 30.0 + 2 * 60.0), (1, 4, 150.0), (2, 4, 30.0 + 60.0)]
    assert left[-1] == (4, 4, 0.0)
    events.clear()
    light = {SHORT.id: {LATENCY}, LONG.id: {Metric.COLD_COMPILE_TIME}}
    make_fleet(engine, observe=events.append).add_trials(run, light, 3)
    # Of one without a light trial a share of its whole ones is expected.
    assert list_progress(events)[0].left_s == (30.0 + 60.0) * EXTENT_SHARES[Extent.COLD]


def test_little_time_that_is_left_is_not_rounded_up() -> None:
    """A quarter of a second is that."""
    events: list[Event] = []
    engine = FakeLanes(places=make_places(1), measure=take_seconds)
    measure(
        make_fleet(engine, observe=events.append), replace(plan([]), cases=(replace(SHORT, expected_s=0.25),))
    )
    assert [progress.left_s for progress in list_progress(events)] == [0.25, 0.0]


def test_many_lanes_begin_with_the_pairs_that_press_most() -> None:
    """However long another case of the same lane takes."""
    subjects = [Subject(name=name) for name in ("m0", "m2", "m3")]
    assert {choose_lane(subject.case.id, make_places(2)) for subject in subjects} == {"GPU-1"}
    engine, run = make_engine(2, subjects), plan(subjects)
    cases = tuple(replace(case, expected_s=index) for index, case in enumerate(run.cases, start=1))
    assert run.base is not None
    run = replace(run, cases=cases, base=replace(run.base, cases=cases))
    make_fleet(engine).add_pairs(run, [need(subject.name, 1) for subject in subjects], math.inf)
    assert [case_id for _, case_id, _ in engine.asked] == ["m0/x", "m2/x", "m3/x"]


def test_what_begins_anew_is_all_left() -> None:
    """Of a case with a trial on a lane that is gone both trials are to come, on the pace of that one."""
    events: list[Event] = []
    gone = Trial(case_id=SHORT.id, index=1, stages_s={"rounds": 30.0}, place="GPU-9")
    run = replace(plan([]), cases=(SHORT,), trials=(gone,), trials_planned=2)
    engine = FakeLanes(places=make_places(2), measure=take_seconds)
    measure(make_fleet(engine, observe=events.append), run)
    assert list_progress(events)[0].left_s == 2 * 30.0 / 2


def test_two_lanes_share_what_is_left() -> None:
    """Two lanes need half of the time."""
    events: list[Event] = []
    engine = FakeLanes(places=make_places(2), measure=take_seconds)
    measure(make_fleet(engine, observe=events.append), replace(plan([]), cases=(SHORT, LONG)))
    assert list_progress(events)[0].left_s == 15.0


def test_what_is_left_of_pairs() -> None:
    """Two pairs are expected if there is time, of what looks slower three; a case is done after its look."""
    events: list[Event] = []
    fleet = make_fleet(make_engine(1, make_subjects(2)), observe=events.append)
    run = measure(fleet, plan(make_subjects(2)))
    fleet.add_pairs(run, [need("m0", 1), need("m1", 1)], math.inf)
    last = list_progress(events)[-1]
    assert (last.cases, last.cases_done) == (2, 1)
    events.clear()
    run = fleet.add_pairs(run, [replace(need("m0", 1), slower=True), need("m1", 1, later=True)], math.inf)
    first = list_progress(events)[0]
    assert (first.done, first.total, first.cases, first.cases_done) == (0, 2, 2, 0)
    assert (first.left_s, first.is_limited) == (2 * FIRST_PAIR_S + 3 * NEXT_PAIR_S, False)
    events.clear()
    fleet.add_pairs(run, [need("m1", 1)], run.wall_s + FIRST_PAIR_S)
    started, finished = list_progress(events)
    assert (started.cases, started.cases_done) == (2, 1)
    assert (finished.done, finished.total, finished.left_s) == (2, 2, 0.0)
    assert fleet.add_pairs(run, [need("m1", 2)], run.wall_s + 1.0).trials == run.trials
    events.clear()
    fleet.add_pairs(run, [need("m1", 2)], run.wall_s + FIRST_PAIR_S + 1.0)
    first = list_progress(events)[0]
    assert (first.left_s, first.is_limited) == (FIRST_PAIR_S + 1.0, True)
    events.clear()
    fleet.add_pairs(run, [replace(need("m0", 1), slower=True)], run.wall_s + 2 * NEXT_PAIR_S)
    first = list_progress(events)[0]  # one of m0 was measured before
    assert (first.left_s, first.is_limited) == (2 * NEXT_PAIR_S, False)


def test_nothing_is_left_of_a_limit_that_is_over() -> None:
    """The first pair took longer than expected; the second is not begun."""
    subjects, events = make_subjects(2), list[Event]()

    def measure_late(lane: str, unit: Unit) -> tuple[UnitResult, float]:
        part, seconds = rehearse_unit(rehearse(subjects), lane, unit)
        return part, seconds + 100.0

    engine = FakeLanes(places=make_places(1), measure=measure_late)
    fleet = make_fleet(engine, observe=events.append)
    run = replace(
        plan(subjects), trials=tuple(take_time(make_trial(subject, 1), TRIAL_S) for subject in subjects)
    )
    fleet.add_pairs(run, [need("m0", 1), need("m1", 1)], FIRST_PAIR_S)
    (finished,) = [event.progress for event in events if isinstance(event, PairFinished)]
    assert (finished.left_s, finished.is_limited) == (0.0, True)
    assert [case_id for _, case_id, _ in engine.asked] == ["m0/x"]


def test_one_lane_goes_round_the_pairs_that_are_needed_now() -> None:
    """Every case gets a first pair before any gets a second; pairs for later are not begun."""
    engine = make_engine(1, make_subjects(3))
    needs = [need("m0", 2), need("m1", 2), need("m2", 2, later=True)]
    make_fleet(engine).add_pairs(plan(make_subjects(3)), needs, math.inf)
    assert [(case_id, index) for _, case_id, index in engine.asked] == [
        *(("m0/x", 1), ("m1/x", 1)),
        *(("m0/x", 2), ("m1/x", 2)),
    ]


def test_one_lane_settles_the_worst_before_another_is_begun() -> None:
    """The worst case gets its pairs first, and the other one is reported as skipped once."""
    subjects, events = make_subjects(2), list[Event]()
    steady = Screened(is_steady=True)
    mild, worst = (
        Suspect(case_id=subject.case.id, metrics=(LATENCY,), screened=steady) for subject in subjects
    )
    suspects = [
        replace(mild, screened=replace(steady, doubt=0.5)),
        replace(worst, screened=replace(steady, doubt=2.0)),
    ]
    engine = make_engine(1, subjects)
    fleet = make_fleet(engine, observe=events.append)
    run = measure(fleet, plan(subjects))
    limit_s = run.wall_s + FIRST_PAIR_S + NEXT_PAIR_S + 1.0
    settled = settle_pairs(fleet, run, POLICY, PairLimit(end_s=limit_s), suspects)
    asked = [(case_id, index) for _, case_id, index in engine.asked[len(subjects) :]]
    assert asked == [("m1/x", 1), ("m1/x", 2)]
    skipped = [event for event in events if isinstance(event, TrialSkipped)]
    assert [(slot.case_id, slot.index, slot.expected_s) for slot in skipped] == [("m0/x", 1, FIRST_PAIR_S)]
    assert settled.finished


def test_a_run_that_gets_pairs_is_saved_as_unfinished_before() -> None:
    """Once: whoever kills the lab leaves one that can be continued."""
    subjects, saved = make_subjects(1), list[Run]()
    fleet = make_fleet(make_engine(1, subjects), save=saved.append)
    run = measure(fleet, plan(subjects))
    assert saved == [run]
    paired = fleet.add_pairs(run, [need("m0", 1)], math.inf)
    assert saved[1:] == [replace(run, finished=False)]
    assert not fleet.add_pairs(paired, [need("m0", 1)], math.inf).finished
    assert len(saved) == 2


def test_one_lane_keeps_what_was_measured_elsewhere() -> None:
    """A run continued on other cores keeps its trials."""
    subjects = make_subjects(1)
    run = replace(plan(subjects, trials=2), trials=(replace(make_trial(subjects[0], 1), place="host:0-3"),))
    measured = measure(make_fleet(make_engine(1, subjects)), run)
    assert [(trial.index, trial.place) for trial in measured.trials] == [(1, "host:0-3"), (2, "GPU-1")]


@pytest.mark.parametrize("paired", [False, True])
def test_an_interrupt_saves_what_was_measured(paired: bool) -> None:
    """The saved run has its wall time, and the error says how much is left."""
    subjects, saved = make_subjects(2), list[Run]()

    def interrupt(lane: str, unit: Unit) -> tuple[UnitResult, float]:
        if unit.run.cases[0].id == "m1/x":
            engine.now_s += 1.0
            raise KeyboardInterrupt
        return rehearse_unit(rehearse(subjects), lane, unit)

    engine = FakeLanes(places=make_places(1), measure=interrupt)
    fleet, run = make_fleet(engine, save=saved.append), plan(subjects)
    message = "stopped with 1 pair to go" if paired else "stopped after 1 of 2 trials"
    needs = [need("m0", 1), need("m1", 1)]
    with pytest.raises(InterruptedRunError, match=message) as caught:
        _ = fleet.add_pairs(run, needs, math.inf) if paired else measure(fleet, run)
    assert caught.value.fix == "What was measured is saved: continue with --resume."
    assert (len(saved[-1].trials), saved[-1].finished) == (1 + paired, False)
    assert saved[-1].wall_s == engine.now_s


@pytest.mark.parametrize("fails", [False, True])
def test_an_interrupt_before_anything_ended_promises_nothing(*, fails: bool) -> None:
    """Without a result nothing can be continued; a failure is one."""
    subjects = make_subjects(2)

    def interrupt(_: str, unit: Unit) -> tuple[UnitResult, float]:
        if fails and unit.run.cases[0].id == "m0/x":
            return UnitResult(failures=(make_failure(subjects[0], 1),)), TRIAL_S
        raise KeyboardInterrupt

    fleet = make_fleet(FakeLanes(places=make_places(1), measure=interrupt))
    with pytest.raises(InterruptedRunError, match=f"stopped after {fails:d} of 2 trials") as caught:
        measure(fleet, plan(subjects))
    saved, lost = (
        "What was measured is saved: continue with --resume.",
        "Nothing came to its end: start it again.",
    )
    assert caught.value.fix == (saved if fails else lost)


def test_sources_of_a_run_are_bounded() -> None:
    """Sources are kept while there is room for them, of four million characters."""
    sources, more = {"a": "x" * 3_999_999}, {"b": "y"}
    assert join_sources(sources, more) == {**sources, **more}
    assert join_sources(sources, {"b": "yy"}) == sources


def plan_trials(cases: int, planned: int) -> Run:
    planned_cases = tuple(Case(id=f"m{number}/x", model="m") for number in range(cases))
    return replace(make_run([]), cases=planned_cases, trials_planned=planned)


def test_repeats_are_a_share_of_the_plan() -> None:
    """Of 8 cases with 2 trials 4 may be repeated; of a run of one trial, one."""
    assert REPEAT_SHARE == 0.25
    assert [may_repeat(plan_trials(8, 2), repeated) for repeated in (0, 3, 4)] == [True, True, False]
    assert [may_repeat(plan_trials(1, 1), repeated) for repeated in (0, 1)] == [True, False]
