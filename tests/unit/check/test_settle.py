"""The loop of pairs: which case gets how many, and when it ends."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from gate.check.procedure import NO_LIMIT, PairLimit, settle_pairs
from gate.check.rehearsal import Rehearsal
from gate.check.schedule import Slot, list_needs, make_need, rank_suspect
from gate.decide.evidence.pairs import Pair
from gate.decide.judge.pairs import Screened
from gate.decide.suspects import Suspect
from gate.records.cases import Metric
from gate.records.run import Run, Trial
from gate.records.verdict import Status
from tests.make import POLICY

from .conftest import Given, Subject, make_pair, make_run, make_trial

LATENCY, COMPILE = Metric.COMPILED_LATENCY, Metric.COLD_COMPILE_TIME
WILD = (0.3, -0.3) * 8  # no number of these pairs settles anything
WHOLE_S, COLD_S, LIGHT_S = 10.0, 5.0, 4.0  # seconds of a pair, of cold processes alone, of latencies alone


def make_suspect(name: str, *metrics: Metric, doubt: float = 1.0) -> Suspect:
    return Suspect(case_id=f"{name}/x", metrics=metrics or (LATENCY,), screened=Screened(doubt=doubt))


def make_bare_run(*subjects: Subject) -> Run:
    return replace(make_run(subjects), trials=())


def in_seconds(trial: Trial) -> Trial:
    """The trial in half of a pair's time."""
    return replace(trial, stages_s={"rounds": WHOLE_S / 2})


def rehearse(subject: Subject) -> Rehearsal:
    """Pairs of one subject, of WHOLE_S each."""

    def take_trial(slot: Slot) -> Trial:
        raise AssertionError(slot)

    def take_pair(slot: Slot) -> Pair:
        base, head = map(in_seconds, make_pair(subject, slot.index))
        return Pair(base=base, head=head)

    return Rehearsal(take_trial=take_trial, take_pair=take_pair)


def test_no_suspect_needs_no_pair() -> None:
    """Without suspects the run is finished and has no pair."""
    given = Given(subjects=[Subject()])
    run = settle_pairs(
        given, replace(make_bare_run(Subject()), finished=False), POLICY, PairLimit(end_s=100.0), ()
    )
    assert (run.trials, run.finished) == ((), True)


def test_the_worst_comes_first() -> None:
    """The worst case is settled before another begins."""
    subjects = [Subject(name="mild"), Subject(name="worst")]
    given = Given(subjects=subjects)
    suspects = [make_suspect("mild", doubt=0.5), make_suspect("worst", doubt=2.0)]
    settle_pairs(given, make_bare_run(*subjects), POLICY, PairLimit(end_s=100.0), suspects)
    assert given.measured == ["worst/x"] * 3 + ["mild/x"] * 3


def test_of_begun_cases_the_worse_one_comes_first() -> None:
    """However many of the first three pairs each has; a case without any, and a count with three, wait."""
    cases = (
        ("count", Metric.GRAPH_BREAKS, 4.0, 3),
        ("fresh", LATENCY, 3.0, 0),
        ("mild", LATENCY, 1.0, 2),
        ("worse", LATENCY, 2.0, 1),
    )
    ranks = {
        name: rank_suspect(make_suspect(name, metric, doubt=doubt), pairs, 1.0, untouched=False)
        for name, metric, doubt, pairs in cases
    }
    assert sorted(ranks, key=ranks.__getitem__) == ["worse", "mild", "fresh", "count"]


def test_of_two_as_bad_what_settles_sooner_comes_first() -> None:
    """Three pairs of latencies take 22, 8 and 8 s, as the first compiles untimed; of compiles 20 s each."""
    untimed = {COMPILE: 15.0, Metric.WARM_COMPILE_TIME: 1.0}
    subjects = [Subject(name="compile"), Subject(name="calls", alone=[untimed])]
    trials = (replace(make_trial(subject, 1), stages_s={"rounds": 10.0}) for subject in subjects)
    suspects = [make_suspect("compile", COMPILE), make_suspect("calls")]
    needs = list_needs(replace(make_run(subjects), trials=tuple(trials)), suspects, ())
    assert [need.case_id for need in needs] == ["calls/x", "compile/x"]


def test_of_two_begun_cases_what_settles_sooner_comes_first() -> None:
    """A third pair of 15 s comes before a second and third of 10 s."""
    trials: list[Trial] = []
    for name, pairs, seconds in (("one", 1, 10.0), ("two", 2, 15.0)):
        for index in range(1, pairs + 1):
            pair = make_pair(Subject(name=name, spread=WILD), index)
            trials += (replace(trial, stages_s={"rounds": seconds / 2}) for trial in pair)
    run = replace(make_bare_run(Subject(name="one"), Subject(name="two")), trials=tuple(trials))
    needs = list_needs(run, [make_suspect("one", COMPILE), make_suspect("two", COMPILE)], ())
    assert [need.case_id for need in needs] == ["two/x", "one/x"]


@dataclass
class Witness(Given):
    """Keeps for which cases pairs were asked at once."""

    together: list[int] = field(default_factory=list)

    def add_pairs(self, run: Run, needs: Sequence[Suspect], limit_s: float) -> Run:
        """Ten seconds for each call."""
        self.together.append(len(needs))
        run = super().add_pairs(run, needs, limit_s)
        return replace(run, wall_s=run.wall_s + WHOLE_S)


@pytest.mark.parametrize(("end_s", "asked"), [(5.0, [2, 1]), (WHOLE_S, [2, 1]), (WHOLE_S + 1.0, [2, 2])])
def test_after_the_time_is_up_nothing_is_asked_for_later(end_s: float, asked: list[int]) -> None:
    """A pair of 10 s is over: the second one of the first case is asked for alone, so that no lane begins."""
    subjects = [Subject(name="a", spread=WILD), Subject(name="b", spread=WILD)]
    witness = Witness(subjects=subjects)
    suspects = [make_suspect("a", doubt=2.0), make_suspect("b")]
    limit = PairLimit(end_s=end_s, fits_two=True)
    settle_pairs(witness, make_bare_run(*subjects), POLICY, limit, suspects)
    assert witness.together[:2] == asked


def test_what_imports_nothing_that_changed_comes_last() -> None:
    """Without baselines cases that import a changed file get the pairs."""
    subjects = [Subject(name="neighbour", imports=()), Subject(name="changed", imports=("model.py",))]
    given = Given(subjects=subjects, time_for=4)
    run = replace(make_bare_run(*subjects), trials=tuple(make_trial(subject, 1) for subject in subjects))
    settle_pairs(
        given,
        run,
        POLICY,
        PairLimit(end_s=100.0),
        [make_suspect("neighbour", doubt=0.0), make_suspect("changed", doubt=0.0)],
    )
    assert given.measured == ["changed/x"] * 3 + ["neighbour/x"]


def test_last_look_ends_it() -> None:
    """Open cases end after sixteen pairs."""
    given = Given(subjects=[Subject(spread=WILD)])
    run = settle_pairs(given, make_bare_run(Subject()), POLICY, PairLimit(end_s=100.0), [make_suspect("a")])
    assert run.pair_counts["a/x"] == 16
    assert make_need(make_suspect("a"), run.pair_counts["a/x"], run.environment.device_kind).more == 0


def test_a_target_is_seen_twice_and_no_more() -> None:
    """A target's open counts end after two pairs."""
    given = Given(subjects=[Subject(spread=WILD)])
    run = make_bare_run(Subject())
    run = replace(run, environment=replace(run.environment, device_kind="target"))
    run = settle_pairs(given, run, POLICY, PairLimit(end_s=100.0), [make_suspect("a")])
    assert run.pair_counts["a/x"] == 2
    assert make_need(make_suspect("a"), run.pair_counts["a/x"], run.environment.device_kind).more == 0


@pytest.mark.parametrize(("time_for", "expected"), [(2, ["a/x"] * 2), (0, [])])
def test_time_that_is_up_ends_it(time_for: int, expected: list[str]) -> None:
    """A case that got fewer pairs than it needs is not measured again."""
    subjects = [Subject(name="a", spread=WILD), Subject(name="b", spread=WILD)]
    given = Given(subjects=subjects, time_for=time_for)
    suspects = [make_suspect("a", doubt=2.0), make_suspect("b")]
    run = settle_pairs(given, make_bare_run(*subjects), POLICY, PairLimit(end_s=100.0), suspects)
    assert given.measured == expected
    assert run.finished


def test_failure_ends_one_case() -> None:
    """The other case is settled."""
    subjects = [Subject(name="a", failing_pair=1), Subject(name="b")]
    given = Given(subjects=subjects)
    suspects = [make_suspect("a", doubt=2.0), make_suspect("b")]
    run = settle_pairs(given, make_bare_run(*subjects), POLICY, PairLimit(end_s=100.0), suspects)
    assert given.measured == ["b/x"] * 3
    assert [failure.case_id for failure in run.failures] == ["a/x"]


def test_case_that_the_base_lacks_gets_no_pair() -> None:
    subjects = [Subject(name="a"), Subject(name="b")]
    run = make_bare_run(*subjects)
    assert run.base is not None
    run = replace(run, base=replace(run.base, cases=run.base.cases[1:]))
    given = Given(subjects=subjects)
    settle_pairs(given, run, POLICY, PairLimit(end_s=100.0), [make_suspect("a"), make_suspect("b")])
    assert given.measured == ["b/x"] * 3


def test_latencies_may_use_up_the_looks_of_a_compile_time() -> None:
    """After 15 pairs 4.5 s are left: the last pair times latencies only, and the compile stays open."""
    subject = Subject(spread=WILD, compiles=(0.4, -0.3) * 8)
    suspects = [replace(make_suspect("a", LATENCY, COMPILE), thorough=True)]
    limit_s = WHOLE_S + 14 * COLD_S + 4.5
    run = settle_pairs(rehearse(subject), make_bare_run(subject), POLICY, PairLimit(end_s=limit_s), suspects)
    compiled = [trial.index for trial in run.trials if trial.arm == "base" and COMPILE in trial.samples]
    assert (run.pair_counts["a/x"], compiled) == (16, list(range(1, 16)))
    assert run.wall_s == pytest.approx(WHOLE_S + 14 * COLD_S + LIGHT_S)


def test_the_whole_plan_gets_a_pair_of_each_case_first() -> None:
    """Every case gets one pair, then a new break its second, then times."""
    subjects = [Subject(name="a"), Subject(name="b", breaks=1.0), Subject(name="c")]
    given = Given(subjects=subjects, time_for=5)
    settle_pairs(given, make_bare_run(*subjects), POLICY, NO_LIMIT, None)
    assert sorted(given.measured[:3]) == ["a/x", "b/x", "c/x"]
    assert given.measured[3] == "b/x"


def test_a_count_gets_its_second_look_before_a_time_gets_another_pair() -> None:
    """However slow another case is, the break gets its pair first."""
    subjects = [Subject(name="slow"), Subject(name="broken", breaks=1.0)]
    given = Given(subjects=subjects, time_for=3)
    broken = replace(
        make_suspect("broken", Metric.GRAPH_BREAKS),
        screened=Screened(seen={Metric.GRAPH_BREAKS: Status.REGRESSED}),
    )
    suspects = [make_suspect("slow", doubt=9.0), broken]
    settle_pairs(given, make_bare_run(*subjects), POLICY, NO_LIMIT, suspects)
    assert given.measured == ["broken/x", "slow/x", "slow/x"]


@pytest.mark.parametrize(("fits_two", "expected"), [(True, ["a/x"] * 2), (False, [])])
def test_two_pairs_of_a_case_fit_unless_the_user_set_the_limit(fits_two: bool, expected: list[str]) -> None:
    """Pairs of 10 s end after 6 s: by default the first case still gets two."""
    subjects = [Subject(name="a", spread=WILD), Subject(name="b", spread=WILD)]
    rehearsals = {f"{subject.name}/x": rehearse(subject) for subject in subjects}
    measured: list[str] = []

    def take_pair(slot: Slot) -> Pair:
        measured.append(slot.case.id)
        return rehearsals[slot.case.id].take_pair(slot)

    run = replace(
        make_run(subjects), trials=tuple(in_seconds(make_trial(subject, 1)) for subject in subjects)
    )
    limit = PairLimit(end_s=6.0, fits_two=fits_two)
    suspects = [make_suspect("a", COMPILE, doubt=2.0), make_suspect("b", COMPILE)]
    settle_pairs(replace(rehearsals["a/x"], take_pair=take_pair), run, POLICY, limit, suspects)
    assert measured == expected


def test_a_suspect_count_gets_its_second_pair_after_the_time_is_up() -> None:
    """Pairs of 10 s end after 25 s: two cases have begun, and each new break is seen again."""
    subjects = [Subject(name="a", breaks=1.0), Subject(name="b", breaks=1.0), Subject(name="c")]
    measured: list[str] = []

    def take_pair(slot: Slot) -> Pair:
        measured.append(slot.case.id)
        return rehearse(next(subject for subject in subjects if subject.case.id == slot.case.id)).take_pair(
            slot
        )

    run = replace(
        make_run(subjects), trials=tuple(in_seconds(make_trial(subject, 1)) for subject in subjects)
    )
    given = replace(rehearse(subjects[0]), take_pair=take_pair)
    settle_pairs(given, run, POLICY, PairLimit(end_s=25.0, fits_two=True), None)
    assert measured == ["a/x", "b/x", "a/x", "b/x"]
