"""What a drift is of: an answer that is another one, or the output or gradient that is mostly off."""

from __future__ import annotations

from collections.abc import Iterable

from gate.records import Code, Fact, Metric, Trial, name_words
from gate.records.facts import MISMATCH_CODES


def find_worst(trials: Iterable[Trial], metric: Metric) -> Fact | None:
    """Find it in the trial that drifted most, of those that measured it; ``None`` where nobody knows."""
    known = (trial for trial in trials if trial.samples.get(metric))
    trial = max(known, key=lambda one: max(one.samples[metric]))
    worst = trial.worst.get(metric)
    if worst is None or not worst.output:
        return None
    told = (one for one in trial.warnings if one.code in MISMATCH_CODES)
    alone = Fact(code=Code.DRIFT_OF, numbers={"steps": worst.steps}, names=name_words(output=worst.output))
    return next((one for one in told if one.name("output") == worst.output), alone)
