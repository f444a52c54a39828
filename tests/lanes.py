"""Lanes of a made-up fleet, whose time passes only while somebody waits."""

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gate.check.rehearsal import Rehearsal
from gate.check.work import Answer, Unit, UnitResult
from gate.decide.suspects import Suspect
from gate.records.run import Place, Run, Trial


def make_places(count: int, host: str = "host") -> dict[str, Place]:
    """So many lanes with a card each."""
    places = [Place(host=host, device=f"GPU-{number}", cores="0-3") for number in range(1, count + 1)]
    return {place.name: place for place in places}


def rehearse_unit(rehearsal: Rehearsal, lane: str, unit: Unit) -> tuple[UnitResult, float]:
    """A lane's result of a unit, and its seconds."""
    (case,) = unit.run.cases
    if unit.paired:
        need = Suspect(case_id=case.id, metrics=unit.metrics, more=1, unchanged_code=unit.unchanged_code)
        run = rehearsal.add_pairs(unit.run, [need], math.inf)
    else:
        run = rehearsal.add_trials(unit.run, {case.id: unit.metrics}, unit.index)
    new = run.trials[len(unit.run.trials) :]
    part = UnitResult(trials=tuple(replace(trial, place=lane) for trial in new))
    return part, run.wall_s - unit.run.wall_s


@dataclass(kw_only=True)
class FakeLanes:
    """An engine; ``measure`` gives a unit's result on a lane, and its seconds."""

    places: Mapping[str, Place]
    measure: Callable[[str, Unit], tuple[UnitResult, float]]
    dies_s: dict[str, float] = field(default_factory=dict)  # when a lane is lost, and that is known
    hangs: set[str] = field(default_factory=set)  # lanes that answer nothing
    late_s: float = 0.0  # how long after it was lost a lane answers all the same; 0: never
    now_s: float = 0.0
    asked: list[tuple[str, str, int]] = field(default_factory=list)  # lane, case, index
    busy_s: dict[str, float] = field(default_factory=dict)  # of each lane
    ended_s: dict[str, float] = field(default_factory=dict)  # when each lane ended its last unit
    ended: list[str] = field(default_factory=list)
    _coming: list[tuple[float, int, Answer]] = field(default_factory=list)
    _order: Iterator[int] = field(default_factory=itertools.count)

    def list_lanes(self) -> Mapping[str, Place]:
        return self.places

    def submit(self, lane: str, unit: Unit) -> None:
        """Compute the result and when it comes."""
        self.asked.append((lane, unit.run.cases[0].id, unit.index))
        part, seconds = self.measure(lane, unit)
        self.busy_s[lane] = self.busy_s.get(lane, 0.0) + seconds
        end_s, dies_s = self.now_s + seconds, self.dies_s.get(lane, math.inf)
        self.ended_s[lane] = end_s
        if lane in self.hangs:
            return
        if dies_s < end_s:
            self._push(max(dies_s, self.now_s), Answer(lane=lane, why="the host is gone"))
            end_s += self.late_s
        if dies_s >= end_s or self.late_s:
            self._push(end_s, Answer(lane=lane, part=part))

    def wait(self, limit_s: float) -> Answer | None:
        """Let time pass until the next answer."""
        if not self._coming or self._coming[0][0] > self.now_s + limit_s:
            self.now_s += limit_s
            return None
        self.now_s, _, answer = heapq.heappop(self._coming)
        return answer

    def end(self, lane: str) -> None:
        self.ended.append(lane)

    def read_s(self) -> float:
        return self.now_s

    def _push(self, when_s: float, answer: Answer) -> None:
        heapq.heappush(self._coming, (when_s, next(self._order), answer))


def list_places(run: Run, case_id: str) -> list[str]:
    """Places of a case's trials, each once."""
    return sorted({trial.place for trial in run.trials if trial.case_id == case_id})


def drop_places(trials: Sequence[Trial]) -> list[Trial]:
    """The trials without places, as of a lab."""
    return [replace(trial, place="") for trial in trials]
