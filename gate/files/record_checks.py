"""What must hold of a record beyond the type of each key.

In an edited or damaged file, a peak memory of -1 would be an improvement.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, starmap

from gate.errors import FileError
from gate.files.invalid import quote_value
from gate.metrics import SPECS
from gate.records.cases import Metric, collect_columns
from gate.records.run import BASE_ARM, CANDIDATE_ARM, Baseline, CaseFailure, Pairing, Run, Trial
from gate.records.shown import Shown
from gate.records.verdict import Verdict

_EDITED = "It was edited: judge the run again with `compare`."
_FIX = "compile-gate writes no such file: check its origin, or measure again."
_ARMS = (BASE_ARM, CANDIDATE_ARM)
_DOMAINS = {metric: spec.domain for metric, spec in SPECS.items()}


def check_run(run: Run, source: str) -> None:
    """Check that the parts of a run fit its plan, on which reconciliation rests.

    Raises:
        FileError: With the file, the key and what is wrong.
    """
    planned = {case.id for case in run.cases}
    if len(planned) < len(run.cases):
        raise FileError(source, "cases", "plans a case twice", _FIX)
    if run.shard and run.shard.cases < len(run.cases):
        problem = f"{run.shard.cases} of all shards, fewer than the {len(run.cases)} of this one"
        raise FileError(source, "shard.cases", problem, _FIX)
    tables = (*(trial.samples for trial in run.trials), *(trial.undisturbed_s for trial in run.trials))
    are_possible = all(starmap(_are_possible, collect_columns(tables).items()))
    seen: set[tuple[str, int, str, bool]] = set()
    for index, trial in enumerate(run.trials):
        key = (trial.case_id, trial.index, trial.arm, trial.pairing is Pairing.ALONE)
        if key in seen:
            raise FileError(source, f"trials[{index}]", "repeats a trial that came before", _FIX)
        seen.add(key)
        if trial.arm not in _ARMS:
            problem = f"expected one of {', '.join(_ARMS)}, got {quote_value(trial.arm)}"
            raise FileError(source, f"trials[{index}].arm", problem, _FIX)
        if not are_possible:
            _check_values(trial.samples, source, f"trials[{index}].samples")
            _check_values(trial.undisturbed_s, source, f"trials[{index}].undisturbed_s")
    named: dict[str, Sequence[Trial | CaseFailure]]
    named = {"trials": run.trials, "failures": run.failures, "retried": run.retried}
    for name, records in named.items():
        for index, record in enumerate(records):
            if record.case_id not in planned:
                problem = f"the case {quote_value(record.case_id)} is not planned"
                raise FileError(source, f"{name}[{index}].case_id", problem, _FIX)


def check_baseline(baseline: Baseline, source: str) -> None:
    """Check the values of all metrics.

    Raises:
        FileError: A metric has no value, or one that no measurement gives.
    """
    for metric, values in baseline.trials.items():
        if not values:
            raise FileError(source, f"trials.{metric}", "holds no value", "Remove the key or record again.")
    _check_values(baseline.trials, source, "trials")


def check_verdict(verdict: Verdict | Shown, source: str) -> None:
    """Check that a verdict is whole and fits its rows.

    Raises:
        FileError: It was cut, has another outcome than its rows call for, or impossible values.
    """
    from gate.decide.conclude.outcome import decide_outcome  # noqa: PLC0415 - workers write files and decide nothing

    _check_counts(verdict, source)
    expected = decide_outcome(verdict.comparisons, finished=verdict.tally.finished)
    if verdict.outcome is not expected:
        problem = f"is {verdict.outcome}, but what was compared makes it {expected}"
        raise FileError(source, "outcome", problem, _EDITED)
    for index, comparison in enumerate(verdict.comparisons):
        for side in ("baseline", "candidate"):
            estimate = getattr(comparison, side)
            # A median of counts may lie between two of them, so it need not be whole.
            if estimate and not SPECS[comparison.metric].domain.spans(estimate.centre):
                problem = _describe(comparison.metric, estimate.centre)
                raise FileError(source, f"comparisons[{index}].{side}.centre", problem, _FIX)


def _check_counts(verdict: Verdict | Shown, source: str) -> None:
    """A row that is cut out fails nothing."""
    counted = (
        ("cases", verdict.cases, verdict.tally.cases),
        ("comparisons", verdict.comparisons, verdict.tally.comparisons),
    )
    for key, records, count in counted:
        if count is not None and count != len(records):
            raise FileError(source, key, f"holds {len(records)}, and was written with {count}", _EDITED)


def _are_possible(metric: Metric, columns: Iterable[Sequence[float]]) -> bool:
    """Of one trial or of all: the extremes show all but whether each is whole, and the least besides 0."""
    values, domain = list(chain.from_iterable(columns)), _DOMAINS[metric]
    shown = [min(values), max(values)] if values else []
    if 0.0 in shown:
        shown.append(min(filter(None, values), default=0.0))
    return all(map(domain.spans, shown)) and (not domain.whole or all(map(float.is_integer, values)))


def _check_values(samples: Mapping[Metric, Sequence[float]], source: str, key: str) -> None:
    for metric, values in samples.items():
        if _are_possible(metric, (values,)):  # thousands of samples a trial
            continue
        for index, value in enumerate(values):
            if not _DOMAINS[metric].holds(value):
                problem = _describe(metric, value)
                raise FileError(source, f"{key}.{metric}[{index}]", problem, _FIX)


def _describe(metric: Metric, value: float) -> str:
    return f"{metric} is {SPECS[metric].domain.describe()}, not {value:g}"
