"""Which changed default of torch.compile made something worse: some are set back on head, a pair each."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from gate.check.measurer import LaneMeasurer
from gate.check.schedule import FURTHER, Pace, Slot, name_device, predict_pair_s
from gate.check.work import Engine, Unit, UnitResult
from gate.decide.constants import MORE_WORK
from gate.decide.evidence.pairs import Pair, collect_paired, list_pairs
from gate.decide.evidence.values import compute_values
from gate.decide.explain.defaults import is_clear, is_gone
from gate.devices import is_gpu
from gate.metrics import COMPILE_TIMES, SPECS, Family
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.events import Noted
from gate.records.facts import Fact, make_text, name_words
from gate.records.run import BASE_ARM, Probe, Run
from gate.records.verdict import Comparison, Status, Verdict

DEFAULTS_SHARE = 0.2  # of the time that the run may take, on top of it
_ON, _OFF = "true", "false"  # as JSON
# Inductor's options of code for one kind of device.
_CPU_OPTIONS = ("inductor.cpp.", "inductor.halide.")
_GPU_OPTIONS = tuple(f"inductor.{name}." for name in ("triton", "cuda", "cutlass", "rocm", "mtia", "xpu"))


def find_worst(verdict: Verdict) -> Comparison | None:
    rows = (row for row in verdict.comparisons if row.decides and row.status is Status.REGRESSED)
    return max(rows, key=lambda row: row.severity, default=None)


def list_settable(defaults: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Numbers, words and switches are set back; a new one that is on, off."""
    switched = {name: _OFF for name, (base, head) in defaults.items() if not base and head == _ON}
    plain = {name: base for name, (base, head) in defaults.items() if base and head and base[0] not in "[{"}
    return {**plain, **switched}


def choose_metric(worst: Comparison, pairs: Sequence[Pair]) -> Metric:
    """Calls show a speedup best, and Python calls a compile with more work."""
    if worst.metric is Metric.WARM_SPEEDUP:
        return Metric.COMPILED_LATENCY
    calls = compute_change(Metric.COMPILE_CALLS, pairs)
    is_work = worst.metric in COMPILE_TIMES and calls is not None and calls > MORE_WORK
    return Metric.COMPILE_CALLS if is_work else worst.metric


def compute_change(metric: Metric, pairs: Sequence[Pair]) -> float | None:
    """The median over pairs, + is worse: a fraction of the base's value; of 0, head's value.

    Of drift, the difference of its logarithms.
    """
    if paired := collect_paired(pairs).get(metric):
        return math.expm1(median(paired.changes))
    sides = [(compute_values(pair.base).get(metric), compute_values(pair.head).get(metric)) for pair in pairs]
    is_log = SPECS[metric].family is Family.LOG2
    changes = [
        (head - base) / (1.0 if is_log else base or 1.0)
        for base, head in sides
        if base is not None and head is not None
    ]
    return median(changes) if changes else None


def probe_defaults(measurer: LaneMeasurer, run: Run, verdict: Verdict, run_s: float) -> Run:
    """Add pairs that show which options, set back, undo the worst regression of a run of two stacks.

    They take at most DEFAULTS_SHARE of ``run_s``, the seconds that the run itself may take. Only on a single
    lane.
    """
    worst, options = find_worst(verdict), list_settable(run.base.defaults) if run.base else {}
    pairs = list_pairs(run.trials).get(worst.case_id, ()) if worst else ()
    if not (run_s and worst and options) or len(measurer.engine.list_lanes()) != 1:
        return run
    metric = choose_metric(worst, pairs)
    change = compute_change(metric, pairs)
    if change is None or not is_clear(metric, change):
        return run
    names = name_words(case=worst.case_id)
    measurer.observe(Noted(fact=Fact(code=Code.PROBING, numbers={"defaults": len(options)}, names=names)))
    prober = _Prober(
        measurer.engine, run, Probe(case_id=worst.case_id, metric=metric, change=change), options
    )
    try:
        prober.search(DEFAULTS_SHARE * run_s)
    except KeyboardInterrupt:  # all that the verdict rests on is measured
        measurer.observe(Noted(fact=make_text("stopped; the verdict is of what was measured before")))
    return prober.run


class _Prober:
    def __init__(self, engine: Engine, run: Run, blank: Probe, options: Mapping[str, str]) -> None:
        self.run = run
        self._engine, self._blank, self._options = engine, blank, options
        self._end_s: float
        self._case = next(case for case in run.cases if case.id == blank.case_id)

    def search(self, limit_s: float) -> None:
        """Halve what is set back until one is left, and measure that; a noisy change must be undone twice.

        Options of other devices' code are the second of the first two halves. Where options act together,
        the last one undoes nothing, and the fewest that did are the cause.
        """
        self._end_s = self._engine.read_s() + limit_s
        names = tuple(sorted(self._options, key=self._is_foreign))
        if self._undoes(names) is False:
            return
        likely = sum(not self._is_foreign(name) for name in names)
        half = likely if 0 < likely < len(names) else len(names) // 2
        while len(names) > 1:
            names = self._choose(names[:half], names[half:])
            half = len(names) // 2
        times = 2 if SPECS[self._blank.metric].family is Family.NOISY else 1
        for _ in range(times - sum(probe.options == names for probe in self.run.probes)):
            self._undoes(names)

    def _is_foreign(self, name: str) -> bool:
        others = _CPU_OPTIONS if is_gpu(self.run.environment.device_kind) else _GPU_OPTIONS
        return name.startswith(others)

    def _choose(self, first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
        """The half with the cause; one with which head fails may hide it, if the other has not got it."""
        undoes = self._undoes(first)
        if undoes is None:
            return second if self._undoes(second) else first
        return first if undoes else second

    def _undoes(self, names: tuple[str, ...]) -> bool | None:
        """``None`` if head fails, False once time is up."""
        slot = Slot(case=self._case, index=FURTHER, metrics=(self._blank.metric,))
        pair_s = predict_pair_s(
            Pace(self.run.cases, self.run.trials), slot, name_device(self.run.environment)
        )
        if self._engine.read_s() + pair_s > self._end_s:
            return False
        pair = self._measure(names)
        left = compute_change(self._blank.metric, [pair]) if pair else None
        if left is None:
            return None
        probe = replace(self._blank, options=names, left=left)
        self.run = replace(self.run, probes=(*self.run.probes, probe))
        return is_gone(probe)

    def _measure(self, names: Sequence[str]) -> Pair | None:
        engine, case = self._engine, self._case
        cases = (
            tuple(candidate for candidate in self.run.base.cases if candidate.id == case.id)
            if self.run.base
            else ()
        )
        part = replace(
            self.run,
            cases=(case,),
            base=self.run.base and replace(self.run.base, cases=cases),
            trials=tuple(trial for trial in self.run.trials if trial.case_id == case.id),
            failures=(),
            sources={},
        )
        unit = Unit(
            run=part,
            metrics=(self._blank.metric,),
            index=FURTHER + len(self.run.probes),
            paired=True,
            options={name: self._options[name] for name in names},
        )
        engine.submit(next(iter(engine.list_lanes())), unit)
        answer = engine.wait(math.inf)
        result = answer.part if answer and answer.part else UnitResult()
        arms = {trial.arm: trial for trial in result.trials}
        return Pair(base=arms.pop(BASE_ARM), head=arms.popitem()[1]) if len(arms) > 1 else None
