"""How busy the lanes of a fleet are, and whether its verdict is one machine's: a simulation.

::

    PYTHONPATH=. python benchmarks/fleet_lanes.py [--cases 2000] [--lanes 8 64] [--lost 1]
    PYTHONPATH=. python benchmarks/fleet_lanes.py --cases 500 --lanes 64 --refresh 30

A case takes as long as a lognormal draw says: half of them between 0.6 and 1.6 times the median of 30 s, the
longest of 2,000 some ten times it. Whatever lane measures a trial or pair, it is the same draw. --refresh
measures so many trials of each case and judges nothing; where gate.yml says what cases take, and where not.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import replace

from gate.check.measurer import LaneMeasurer
from gate.check.procedure import Checked, CheckTerms, check_against_base
from gate.check.schedule import want_whole
from gate.check.work import Unit, UnitResult
from gate.decide.evidence.baseline import make_baselines
from gate.records.events import ignore_event
from gate.records.run import Provenance

from draws import POLICY, Drawer  # isort: skip
from world_requests import make_measurer
from worlds import Fault, World

from tests.lanes import FakeLanes, make_places, rehearse_unit

SPREAD = 0.7  # of the logarithm of a case's time


def simulate(drawer: Drawer, lanes: int, lost: int) -> tuple[Checked, FakeLanes, float, float]:
    """One check on so many lanes; also when its trials ended, and the seconds that the driver computed."""
    rehearsal, factors = make_measurer(drawer), draw_factors(drawer)

    def measure(lane: str, unit: Unit) -> tuple[UnitResult, float]:
        part, seconds = rehearse_unit(rehearsal, lane, unit)
        return part, seconds * factors[unit.run.cases[0].id]

    places = make_places(lanes)
    engine = FakeLanes(places=places, measure=measure, dies_s=dict.fromkeys(list(places)[:lost], 600.0))
    fleet = LaneMeasurer(engine=engine, save=lambda _: None, keep=lambda _: None, observe=ignore_event)
    terms = CheckTerms(baselines=make_baselines(drawer.draw_stored(), Provenance()), policy=POLICY)
    run = replace(drawer.make_run(has_base=True), trials_planned=1)
    begun = time.process_time()
    run = fleet.add_trials(run, want_whole(case.id for case in run.cases), 1)
    trials_s = engine.now_s
    checked = check_against_base(fleet, run, terms)
    return checked, engine, trials_s, time.process_time() - begun


def draw_factors(drawer: Drawer) -> dict[str, float]:
    """Draw how many times as long as the median each case takes."""
    rng = random.Random(1)  # noqa: S311 - repeatable, not secret
    return {case.id: rng.lognormvariate(0, SPREAD) for case in drawer.cases}


def simulate_refresh(drawer: Drawer, lanes: int, trials: int, *, is_expected: bool) -> FakeLanes:
    """A baseline refresh on so many lanes; ``is_expected`` says that each case has its ``expected_s``."""
    rehearsal, factors = make_measurer(drawer), draw_factors(drawer)

    def measure(lane: str, unit: Unit) -> tuple[UnitResult, float]:
        first = replace(unit, index=1, run=replace(unit.run, trials=()))
        part, seconds = rehearse_unit(rehearsal, lane, first)
        part = replace(part, trials=tuple(replace(trial, index=unit.index) for trial in part.trials))
        return part, seconds * factors[unit.run.cases[0].id]

    engine = FakeLanes(places=make_places(lanes), measure=measure)
    fleet = LaneMeasurer(engine=engine, save=lambda _: None, keep=lambda _: None, observe=ignore_event)
    run = replace(drawer.make_run(has_base=False), trials_planned=trials)
    if is_expected:
        cases = (replace(case, expected_s=case.expected_s * factors[case.id]) for case in run.cases)
        run = replace(run, cases=tuple(cases))
    fleet.add_trials(run, want_whole(case.id for case in run.cases), trials)
    return engine


def print_refresh(drawer: Drawer, lanes: int, trials: int) -> None:
    """Print how long a refresh takes, beside what bounds it from below."""
    for is_expected in (True, False):
        engine = simulate_refresh(drawer, lanes, trials, is_expected=is_expected)
        work_s, factors = sum(engine.busy_s.values()), draw_factors(drawer)
        longest_s = work_s * max(factors.values()) / sum(factors.values())
        print(
            f"{lanes:3d} lanes, {trials} trials, {'with' if is_expected else 'without'} expected_s:"
            f" {engine.now_s / 60:.0f} min; the work divided by the lanes is {work_s / lanes / 60:.0f} min,"
            f" the longest case alone {longest_s / 60:.0f} min"
        )


def main() -> None:
    """Print a line for each number of lanes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--lanes", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--lost", type=int, default=0, help="so many lanes are lost after ten minutes")
    parser.add_argument("--refresh", type=int, default=0, metavar="TRIALS", help="of each case")
    options = parser.parse_args()
    # Of a pair's time a trial takes half: it is the trial that takes 30 s where there are no pairs.
    pair_s = 60.0 if options.refresh else 30.0
    drawer = Drawer("fleet", World(cases=options.cases, pair_s=pair_s), Fault())
    if options.refresh:
        for lanes in options.lanes:
            print_refresh(drawer, lanes, options.refresh)
        return
    rows = {}
    for lanes in options.lanes:
        checked, engine, trials_s, driver_s = simulate(drawer, lanes, options.lost if lanes > 1 else 0)
        rows[lanes] = {(row.case_id, row.metric): row.status for row in checked.verdict.comparisons}
        slots = len(engine.asked)
        busy = sum(engine.busy_s.values()) / (lanes * engine.now_s)
        idle = [engine.now_s - end_s for end_s in engine.ended_s.values()]
        print(
            f"{lanes:3d} lanes: {slots} slots, {trials_s / 60:.1f} min of trials and"
            f" {(engine.now_s - trials_s) / 60:.1f} min of pairs; lanes are busy {busy:.1%} of the time;"
            f" the first one is done {max(idle):.0f} s before the last;"
            f" driver {driver_s / slots * 1e3:.1f} ms a slot; {checked.verdict.outcome}"
        )
    first, *others = rows.values()
    for lanes, other in zip(list(rows)[1:], others, strict=True):
        differ = sum(first[key] != other.get(key) for key in first)
        print(f"{lanes:3d} lanes: {differ} of {len(first)} statuses differ from those on {next(iter(rows))}")


if __name__ == "__main__":
    main()
