"""A measurer without processes: its trials and pairs, and their time."""

from collections.abc import Collection
from dataclasses import replace

import pytest

from gate.check.rehearsal import Rehearsal
from gate.check.schedule import Slot, want_whole
from gate.decide.evidence.pairs import Pair
from gate.decide.suspects import Suspect
from gate.records.cases import Metric
from gate.records.run import Run, Trial
from tests.make import LATENCIES
from tests.unit.check.conftest import Subject, make_pair, make_run, make_trial

SUBJECT = Subject()
WHOLE = {*LATENCIES, Metric.COLD_COMPILE_TIME, Metric.GRAPH_BREAKS}
CACHED = {*LATENCIES, Metric.WARM_COMPILE_TIME}


def take_trial(slot: Slot) -> Trial:
    """A trial of 10 s."""
    return replace(make_trial(SUBJECT, slot.index), stages_s={"rounds": 10.0})


def take_pair(slot: Slot) -> Pair:
    """A pair of twice 10 s, with a warm process in each arm."""
    warm = {Metric.WARM_COMPILE_TIME: (3.0,)}
    base, head = (
        replace(
            trial, samples={**trial.samples, **warm}, stages_s={"rounds": 10.0}, phases_s={"cpu_self": 1.0}
        )
        for trial in make_pair(SUBJECT, slot.index)
    )
    return Pair(base=base, head=head)


def make_bare_run() -> Run:
    return replace(make_run([SUBJECT]), trials=())


@pytest.mark.parametrize(("budget_s", "trials"), [(35.0, 3), (30.0, 3), (29.0, 2)])
def test_trials_end_with_their_budget(budget_s: float, trials: int) -> None:
    """A third trial of 10 s that would end too late is not begun."""
    first = Rehearsal(take_trial=take_trial, take_pair=take_pair).add_trials(
        make_bare_run(), want_whole(["a/x"]), 1
    )
    rehearsal = Rehearsal(take_trial=take_trial, take_pair=take_pair, budget_s=budget_s)
    run = rehearsal.add_trials(first, want_whole(["a/x"]), 3)
    assert [trial.index for trial in run.trials] == list(range(1, trials + 1))
    assert run.wall_s == 10.0 * trials
    assert rehearsal.add_trials(run, {}, 3) == run


@pytest.mark.parametrize(
    ("metrics", "first", "second", "seconds"),
    [
        ({Metric.COMPILED_LATENCY}, LATENCIES, LATENCIES, 15.0 + 8.0),
        ({Metric.COLD_COMPILE_TIME}, {*WHOLE, Metric.WARM_COMPILE_TIME}, WHOLE, 20.0 + 10.0),
        ({Metric.WARM_COMPILE_TIME}, {*WHOLE, Metric.WARM_COMPILE_TIME}, CACHED, 20.0 + 8.0),
    ],
)
def test_pairs_measure_what_the_lab_would(
    metrics: Collection[Metric], first: set[Metric], second: set[Metric], seconds: float
) -> None:
    """Pairs measure only what is open, and take that share of a whole pair's time.

    Cold processes alone take half of a whole pair. A pair that times no compile takes two fifths, and the
    first as long as compiling takes longer than loading, 10 and 3 s: both arms compile at once.
    """
    rehearsal = Rehearsal(take_trial=take_trial, take_pair=take_pair)
    run = rehearsal.add_pairs(make_bare_run(), [Suspect(case_id="a/x", metrics=metrics, more=2)], 1e9)
    assert [set(trial.samples) for trial in run.trials] == [first, first, second, second]
    assert run.wall_s == pytest.approx(seconds)
    assert bool(run.trials[-1].phases_s) is (second == WHOLE)


def test_a_first_pair_of_known_code_compiles_nothing() -> None:
    """A first pair of unchanged code loads from the caches of head's trial."""
    rehearsal = Rehearsal(take_trial=take_trial, take_pair=take_pair)
    need = Suspect(case_id="a/x", metrics={Metric.COMPILED_LATENCY}, more=2, unchanged_code=True)
    assert rehearsal.add_pairs(make_bare_run(), [need], 1e9).wall_s == pytest.approx(8.0 + 8.0)


def test_on_a_gpu_each_pair_compiles() -> None:
    """On a GPU each pair compiles, since tuning varies."""
    rehearsal, run = Rehearsal(take_trial=take_trial, take_pair=take_pair), make_bare_run()
    run = replace(run, environment=replace(run.environment, device_kind="cuda"))
    needs = [Suspect(case_id="a/x", metrics=LATENCIES, more=2)]
    assert all(set(trial.samples) == WHOLE for trial in rehearsal.add_pairs(run, needs, 1e9).trials)


def test_pairs_for_later_are_not_measured() -> None:
    """Pairs for later count only in what is left."""
    rehearsal = Rehearsal(take_trial=take_trial, take_pair=take_pair)
    needs = [Suspect(case_id="a/x", metrics=LATENCIES, more=2, later=True)]
    assert rehearsal.add_pairs(make_bare_run(), needs, 1e9).trials == ()


def test_pairs_that_end_too_late_are_not_begun() -> None:
    """After a whole pair of 20 s, 9 s are enough for one of latencies, 8 s, and no second."""
    rehearsal = Rehearsal(take_trial=take_trial, take_pair=take_pair)
    needs = [Suspect(case_id="a/x", metrics=WHOLE, more=3)]
    alone = replace(make_bare_run(), trials=(take_trial(Slot(case=SUBJECT.case, index=1)),))
    run = rehearsal.add_pairs(alone, needs, 29.0)
    assert [len(trial.samples) for trial in run.trials[1:]] == [5, 5, 2, 2]
    assert run.wall_s == pytest.approx(28.0)


@pytest.mark.parametrize(("limit_s", "pairs", "wall_s"), [(15.0, 1, 20.0), (14.0, 0, 0.0), (60.0, 3, 40.0)])
def test_guess_keeps_no_first_pair_from_being_tried(limit_s: float, pairs: int, wall_s: float) -> None:
    """A pair of 20 s, expected to take a minute, is tried from 15 s on.

    Its time is known then. Of three that are wanted all fit into a minute, later ones in 10 s; no second
    one into 15 s.
    """
    rehearsal = Rehearsal(take_trial=take_trial, take_pair=take_pair)
    needs = [Suspect(case_id="a/x", metrics=[Metric.COLD_COMPILE_TIME], more=3)]
    run = rehearsal.add_pairs(make_bare_run(), needs, limit_s)
    assert (len(run.trials), run.wall_s) == (2 * pairs, wall_s)
