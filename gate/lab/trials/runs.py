"""Runs: begun in a lab, measured slot by slot on its lane, and continued by another command.

A lane is a device with an open lab, where one slot after the other is measured, trial or pair. A command
measures on one lane of its own, or hands slots to many: :mod:`gate.check.measurer`.

::

    with open_lab(arm, settings, observe, base=base_arm) as lab:
        run = make_run(lab, cases, selection, trials)
        run = measure_plan(make_measurer(lab, save), run)
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from gate import fingerprint
from gate.check.measurer import Measurer
from gate.check.schedule import want_whole
from gate.check.work import Answer, Part, Unit
from gate.errors import UsageError
from gate.lab.arms.arms import CodeState
from gate.lab.arms.checkouts import hash_changes, load_provenance
from gate.lab.trials.bench import load_options
from gate.lab.trials.opening import Lab
from gate.lab.trials.pairs import measure_lab_pair
from gate.lab.trials.trials import measure_trial
from gate.lab.workers.process import defer_interrupts
from gate.records.cases import Case
from gate.records.codes import Code
from gate.records.events import Event, Noted, Observer, ignore_event
from gate.records.facts import Fact
from gate.records.run import BaseArm, Extent, Place, Provenance, Run, Trial
from gate.units import join_some


def measure_unit(lab: Lab, unit: Unit) -> Part:
    """Measure one slot: a trial of the lab's own arm, or a pair.

    Raises:
        MachineError: A disk is full, or an interpreter cannot be started.
    """
    return measure_lab_pair(lab, unit) if unit.paired else measure_trial(lab, unit)


class OwnLane:
    """The lab of this process as the only lane: what it is given is measured while it is awaited."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._units: list[Unit] = []

    def list_lanes(self) -> Mapping[str, Place]:
        """The one."""
        return {self._lab.place.name: self._lab.place}

    def read_s(self) -> float:
        """Read the clock."""
        return time.monotonic()

    def submit(self, lane: str, unit: Unit) -> None:
        """Keep the next unit."""
        del lane
        self._units.append(unit)

    def wait(self, limit_s: float) -> Answer:
        """Measure it; raises as :func:`measure_unit`."""
        del limit_s  # each process has one of its own
        return Answer(lane=self._lab.place.name, part=measure_unit(self._lab, self._units.pop()))

    def end(self, lane: str) -> None:
        """Do nothing: it always answers."""


def make_measurer(lab: Lab, save: Callable[[Run], None]) -> Measurer:
    """Make what measures in this lab."""

    def save_whole(run: Run) -> None:
        with defer_interrupts():
            save(run)

    return Measurer(engine=OwnLane(lab), save=save_whole, observe=lab.observe)


@dataclass(frozen=True, kw_only=True, slots=True)
class LaneTerms:
    """What a lane is opened with, beside what its command wants."""

    out: Path
    observe: Observer = ignore_event
    cores: tuple[int, ...] = ()  # of a lane that shares a CPU with others; () for the device's own
    project: Path = Path()  # where its code is


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    """An open lab, and the run that is still to be measured."""

    lab: Lab
    run: Run

    def measure(self, unit: Unit) -> Part:
        """Measure one slot for a fleet, with what is noted on the way; raises as :func:`measure_unit`."""
        notes: list[Fact] = []
        part = measure_unit(replace(self.lab, observe=partial(keep_note, notes)), unit)
        return replace(part, notes=tuple(notes))


OpenLane = Callable[[LaneTerms], AbstractContextManager[Lane]]
OwnCode = Callable[[], Sequence[CodeState]]  # of head and, beside it, base: found where the command runs


def keep_note(facts: list[Fact], event: Event) -> None:
    """Keep of what is observed on a lane what a reader of the run may wonder about."""
    if isinstance(event, Noted):
        facts.append(event.fact)


def make_run(lab: Lab, cases: Sequence[Case], selection: str, trials: int) -> Run:
    """Make the run that is still to be measured: ``trials`` trials of each of ``cases``.

    Those whose factory cannot be imported, or that the GPU cannot run, have failed already.
    """
    planned = {case.id for case in cases}
    return Run(
        cases=tuple(cases),
        failures=tuple(failure for failure in lab.failed if failure.case_id in planned),
        environment=lab.environment,
        provenance=load_provenance(Path(lab.bench.arm.directory)),
        changes=hash_changes(Path(lab.bench.arm.directory)),
        selection=selection,
        trials_planned=trials,
        toolchain_s=lab.toolchain_s,
        wall_s=lab.toolchain_s,
        sampling=asdict(lab.bench.settings.sampling),
        counts_only=lab.bench.settings.counts_only,
        places={lab.place.name: lab.place},
    )


def describe_base(lab: Lab, label: str, provenance: Provenance, cases: Sequence[Case]) -> BaseArm:
    """Describe the base for the run's record."""
    return BaseArm(
        label=label,
        environment=lab.base_environment,
        provenance=provenance,
        cases=tuple(cases),
        changes=hash_changes(Path(lab.base.arm.directory)),
        defaults=compare_options(*map(load_options, (lab.base, lab.bench))),
    )


def compare_options(base: Mapping[str, str], head: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Compare torch.compile's options of two stacks: those that differ, by name; "" where one has none."""
    names = sorted({*base, *head})
    sides = {name: (base.get(name, ""), head.get(name, "")) for name in names}
    return {name: values for name, values in sides.items() if values[0] != values[1]}


def measure_plan(measurer: Measurer, run: Run) -> Run:
    """Measure ``run`` to its end; trials that it already has are not repeated.

    It is saved before the first trial and after each; a case that failed gets no further trial.

    Raises:
        MachineError: A disk is full.
        InterruptedRunError: Ctrl-C or SIGTERM; everything measured has been saved.
    """
    measurer.save(run)  # an output that cannot be written shows before minutes are spent
    wanted = want_whole(case.id for case in run.cases)
    return measurer.add_trials(run, wanted, run.trials_planned)


def take_up(fresh: Run, previous: Run, observe: Observer) -> Run:
    """Continue ``previous``, and note where its trials may be of other code; raises as :func:`carry_over`."""
    if not fresh.changes:
        observe(Noted(fact=Fact(code=Code.UNCOMMITTED_BEFORE)))
    return carry_over(fresh, previous)


_FIX = "Run without --resume, or restore what was there when the run began."


def carry_over(fresh: Run, previous: Run) -> Run:
    """Take the trials of ``previous`` into ``fresh``, the same run about to be started again.

    What failed is tried again, and so is what was measured before it: the failures are kept to be told, since
    the same code failed. Not taken are trials that measured a part of their case where whole ones are asked
    for: by the plan, or beside a base.

    Raises:
        UsageError: It is not the same run; the first differences are named.
    """
    refuse_other_run(fresh, previous)
    return replace(
        fresh,
        provenance=replace(fresh.provenance, created=previous.provenance.created),
        trials=tuple(
            one
            for one in _list_sound(previous)
            if one.extent is Extent.WHOLE or (fresh.base is None and one.index > fresh.trials_planned)
        ),
        retried=(*previous.retried, *previous.failures),
        sources=previous.sources,
        places={**previous.places, **fresh.places},
        lanes=(*previous.lanes, *fresh.lanes),
        toolchain_s=previous.toolchain_s + fresh.toolchain_s,
        wall_s=previous.wall_s + fresh.wall_s,
    )


def refuse_other_run(fresh: Run, previous: Run) -> None:
    """Refuse to continue another run; raises as :func:`carry_over`."""
    if differences := list_differences(fresh, previous):
        told = join_some(differences, comma="; ")
        raise UsageError(f"the saved run cannot be continued: {told}", _FIX)


def _list_sound(run: Run) -> tuple[Trial, ...]:
    failed = {(failure.arm, failure.case_id, failure.trial) for failure in run.failures}
    return tuple(trial for trial in run.trials if (trial.arm, trial.case_id, trial.index) not in failed)


def list_differences(fresh: Run, previous: Run) -> list[str]:
    """List what makes two runs measurements of different things; empty where they can be one run."""
    return [
        *_tell("", _name_kind(previous), _name_kind(fresh)),
        *_list_case_differences(fresh.cases, previous.cases),
        *fingerprint.describe_difference(previous.environment, fresh.environment),
        *_tell("commit ", previous.provenance.commit[:10], fresh.provenance.commit[:10]),
        *(["what is not committed has changed"] if _is_edited(fresh.changes, previous.changes) else []),
        *(
            told
            for key, value in fresh.sampling.items()
            for told in _tell(f"sampling.{key} ", f"{previous.sampling.get(key, math.nan):g}", f"{value:g}")
        ),
        *(_list_base_differences(fresh.base, previous.base) if fresh.base and previous.base else []),
    ]


def sort_lanes(
    runs: Mapping[int, Run], tree_changes: Mapping[int, str], own: Sequence[CodeState]
) -> tuple[int, dict[int, list[str]]]:
    """Choose of the lanes with our ``own`` code one that most are like; what each differs in, from us or it.

    ``tree_changes`` are those of each lane's working tree.
    """
    differences = {n: _list_code_differences(run, tree_changes[n], own) for n, run in runs.items()}
    sound = [number for number in runs if not differences[number]]
    alike: dict[int, list[int]] = {}  # by the first of them
    for number in sound:
        first = next((one for one in alike if not list_differences(runs[number], runs[one])), number)
        alike.setdefault(first, []).append(number)
    chosen, taken = max(alike, key=lambda first: len(alike[first]), default=next(iter(runs))), set[str]()
    for number in sound:
        (place,) = runs[number].places
        if number not in alike[chosen]:
            differences[number] = list_differences(runs[number], runs[chosen])
        if place in taken:
            differences[number].append(f"it is at {place}, where another lane is")
        elif not differences[number]:
            taken.add(place)
    return chosen, differences


def _list_code_differences(run: Run, tree_changes: str, own: Sequence[CodeState]) -> list[str]:
    head, base = own[0], own[-1]
    # Of a working tree as head; what a lane does not know of it counts as different.
    run = replace(run, changes=tree_changes or "unknown") if head.is_tree else run
    ours = run.base and replace(
        run.base, provenance=Provenance(commit=base.commit), changes="" if base.is_tree else base.changes
    )
    here = replace(run, provenance=Provenance(commit=head.commit), changes=head.changes, base=ours)
    return [f"not this host's code: {difference}" for difference in list_differences(run, here)]


def _tell(what: str, then: str, now: str) -> list[str]:
    return [f"{what}{then or 'none'} -> {now or 'none'}"] if then != now else []


def _name_kind(run: Run) -> str:
    """A run of pairs alone has no trials to judge by what is stored, and no other adds pairs to all cases."""
    kind = "trials (`check`)" if run.trials_planned else "pairs (`ab`)"
    return f"{kind}, counts only" if run.counts_only else kind


def _is_edited(now: str, then: str) -> bool:
    """Whether what is in no commit differs; not where that is unknown."""
    return bool(now and then) and now != then


def _list_base_differences(fresh: BaseArm, previous: BaseArm) -> list[str]:
    changed = fingerprint.describe_difference(previous.environment, fresh.environment)
    is_told = bool(fresh.provenance.commit) and not fresh.provenance.dirty
    if _is_edited(fresh.changes, previous.changes):
        others = ["what the base has in no commit has changed"]
    else:  # another directory, or another state of it, where no commit tells all of the base
        others = [] if is_told else _tell("base ", previous.label, fresh.label)
    return [
        *(f"base: {difference}" for difference in changed),
        *_tell("base commit ", previous.provenance.commit[:10], fresh.provenance.commit[:10]),
        *others,
        *(["other interpreters"] if fresh.pythons and previous.pythons not in ((), fresh.pythons) else []),
    ]


def _list_case_differences(fresh: tuple[Case, ...], previous: tuple[Case, ...]) -> list[str]:
    now = {case.id: case.program for case in fresh}
    then = {case.id: case.program for case in previous}
    return sorted(
        [
            *(f"{case_id} was not part of it" for case_id in now.keys() - then.keys()),
            *(f"{case_id} is no longer selected" for case_id in then.keys() - now.keys()),
            *(
                f"{case_id} has another definition"
                for case_id in now.keys() & then.keys()
                if now[case_id] != then[case_id]
            ),
        ]
    )
