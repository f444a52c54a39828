"""How long a run may take where gate.yml does not say: by its device, and by what its cases take; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gate.decide.constants import MIN_PAIRS
from gate.project.config import Config
from gate.records import Case

# A trial is two processes, and expected_s an estimate: who takes four times a whole trial has hung.
HUNG_TRIALS = 4
_ARMS = 2
LIMIT_KEYS = ("trial_timeout_s", "budget_s", "pair_budget_s")


def fit_limits(config: Config, cases: Sequence[Case]) -> Config:
    """Raise the limits that nobody has set to what the slowest of ``cases`` needs to be settled.

    The defaults are those of small cases: one of ten minutes would be ended as hung, and get neither a
    second trial nor the pairs without which nothing is confirmed.
    """
    slowest_s = max((case.expected_s for case in cases), default=0.0)
    needed = {
        "trial_timeout_s": HUNG_TRIALS * slowest_s,
        "budget_s": config.trials * sum(case.expected_s for case in cases) + slowest_s,
        "pair_budget_s": _ARMS * MIN_PAIRS * slowest_s,
    }
    raised: dict[str, Any] = {
        key: max(getattr(config, key), needed_s)
        for key, needed_s in needed.items()
        if key not in config.origins
    }
    return replace(config, **raised)
