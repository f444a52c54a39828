"""One attempt: plant a fault, measure both arms, let the gate judge them."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from gate.check.procedure import PairLimit, settle_pairs
from gate.check.schedule import compute_trial_s, make_need
from gate.cli.setup import RUN_FILE
from gate.decide.evidence.values import collect_values
from gate.decide.judge.compare import get_threshold
from gate.decide.side_by_side import judge_pairs, list_unsettled
from gate.decide.suspects import Suspect
from gate.errors import UsageError
from gate.files.codec import RUN
from gate.lab.trials.bench import Bench
from gate.lab.trials.opening import Lab
from gate.lab.trials.runs import describe_base, make_measurer, make_run
from gate.lab.trials.trials import run_trial
from gate.lab.workers.worker import make_directory
from gate.metrics import list_watching
from gate.records.cases import Case, Policy
from gate.records.run import BASE_ARM, Pairing, Run, Trial
from gate.records.studies import FaultKind
from gate.report.words.facts import describe_failure
from gate.selftest.catalog import (
    NOTHING,
    Fault,
    FaultSize,
    choose_size,
    find_scale,
    judge_fault,
    measure_size,
    plant_case,
)
from gate.selftest.scores import Attempt

# The decision asks for a second look at a counter, at memory and at drift before it calls them red.
TRIALS_ONCE = 2
# Memory may flicker between two values: of one case in four pairs that looks like a change in 1 of 256.
MEMORY_TRIALS = 4
# One pair can clear but not convict: whatever the time, an attempt gets the pairs of so many looks.
FREE_LOOKS = 2
MIN_HANG_S = 5.0  # the least limit of a case that hangs: by the clock it ends after four times as long


def count_trials(fault: Fault) -> int:
    """Of each arm, for a fault that leaves nothing to chance."""
    return MEMORY_TRIALS if fault.kind is FaultKind.MEMORY else TRIALS_ONCE


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempts:
    """Where faults are tried: both arms are one tree with one wrapping, so that only the fault differs.

    After ``limit_s`` seconds an attempt gets no further pairs, but it gets those of its first looks.
    """

    lab: Lab
    policy: Policy
    out: Path  # of what was measured in pairs
    limit_s: float
    base: dict[str, tuple[Trial, ...]] = field(default_factory=dict)  # of each case, everything measured
    latest: dict[str, tuple[Trial, ...]] = field(default_factory=dict)  # of its base in the last pairs

    def measure_base(self, case: Case, faults: Sequence[Fault]) -> None:
        """Measure the trials that faults which leave nothing to chance are compared with.

        Raises:
            UsageError: The case cannot be measured even without a fault.
        """
        bench, bare = _shorten_sampling(self.lab.base), plant_case(case, NOTHING, FaultSize())
        make_directory(bench.settings.out)
        for index in range(1, max(map(count_trials, faults), default=TRIALS_ONCE) + 1):
            part = run_trial(bench, bare, index)
            if part.failures:
                reason = describe_failure(part.failures[0])
                fix = "Fix it, or select another case with --select."
                raise UsageError(f"{case.id} cannot be measured: {reason}", fix)
            self.base[case.id] = (*self.base.get(case.id, ()), *part.trials)

    def estimate_s(self, fault: Fault, case: Case) -> float:
        arms = 1 if fault.is_certain else 2
        return arms * count_trials(fault) * self._estimate_trial_s(case)

    def try_fault(self, fault: Fault, case: Case, number: int) -> Attempt:
        """Plant a fault, measure until the decision is made, and judge; raises as ``LaneMeasurer.add_pairs``.

        Its size is that of the same pairs, too: a machine whose load changes makes the same seconds another
        fraction.
        """
        begun, metric = time.monotonic(), find_scale(fault)
        values = {**collect_values(self.base[case.id]), **collect_values(self.latest.get(case.id, ()))}
        threshold = get_threshold(self.policy, case.id, metric, in_pairs=True) if metric else None
        size = choose_size(fault, values[metric], threshold) if metric and threshold else FaultSize()
        planted, bare = plant_case(case, fault, size), plant_case(case, NOTHING, FaultSize())
        base, head = (planted, bare) if fault.is_in_base else (bare, planted)
        blank = make_run(self.lab, (head,), head.id, 0)
        blank = replace(blank, base=describe_base(self.lab, "the same tree", blank.provenance, (base,)))
        suspects = None  # the pairs are to settle everything, or the metrics that the fault is about
        if metric:
            suspects = [Suspect(case_id=case.id, metrics=list_watching(metric), thorough=True)]
        if fault.is_certain:
            run = self._measure_once(fault, head, blank)
        else:
            run = self._measure_pairs(blank, suspects, self.out / f"{fault.name}-{number}" / RUN_FILE)
        trials = tuple(trial for trial in run.trials if trial.arm == BASE_ARM)
        if metric and threshold and (measured := collect_values(trials).get(metric)):
            original = [value - size.amount * fault.is_in_base for value in measured]
            size = measure_size(size.amount, original, threshold)
        if trials and not fault.is_certain and not fault.is_in_base:
            self.latest[case.id] = trials
        opinion = judge_fault(fault, judge_pairs(run, self.policy, suspects), run.failures)
        wall_s = time.monotonic() - begun
        return Attempt(fault=fault, case_id=case.id, size=size, opinion=opinion, wall_s=wall_s)

    def _estimate_trial_s(self, case: Case) -> float:
        return max(map(compute_trial_s, self.base[case.id]), default=0.0)

    def _measure_once(self, fault: Fault, head: Case, run: Run) -> Run:
        """Measure a few trials of the head, with as many of the base's."""
        bench = _shorten_sampling(self.lab.bench)
        if fault.kind is FaultKind.HANG:
            usual_s = max(MIN_HANG_S, self._estimate_trial_s(head))
            limit_s = min(bench.settings.trial_timeout_s, usual_s)
            bench = replace(bench, settings=replace(bench.settings, trial_timeout_s=limit_s))
        trials = self.base[head.id][: count_trials(fault)]
        for index in range(1, count_trials(fault) + 1):
            part = run_trial(bench, head, index)
            trials, run = (*trials, *part.trials), replace(run, failures=part.failures)
            if part.failures:
                break
        in_turns = tuple(replace(trial, pairing=Pairing.TURNS) for trial in trials)
        return replace(run, trials=in_turns, finished=True)

    def _measure_pairs(self, run: Run, suspects: Sequence[Suspect] | None, path: Path) -> Run:
        """Measure the pairs of the first looks, however long they take: with fewer nothing can be caught.

        Where nothing is planted everything is measured twice.
        """
        save = partial(RUN.save, path=path)
        measurer, end_s = make_measurer(self.lab, save), run.wall_s + self.limit_s
        for look in range(FREE_LOOKS):
            pairs, kind = run.pair_counts, run.environment.device_kind
            needs = [
                make_need(suspect, pairs[suspect.case_id], kind)
                for suspect in list_unsettled(run, self.policy, suspects)
            ]
            if not look and suspects is None:
                needs = [replace(need, more=max(need.more, TRIALS_ONCE)) for need in needs]
            run = measurer.add_pairs(run, needs, math.inf)
        run = settle_pairs(measurer, run, self.policy, PairLimit(end_s=end_s), suspects)
        save(run)
        return run


def _shorten_sampling(bench: Bench) -> Bench:
    settings = bench.settings
    out = settings.out / "selftest"
    return replace(bench, settings=replace(settings, sampling=settings.sampling.shorten(), out=out))
