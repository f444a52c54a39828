"""The decision: pure functions from a run, baselines and a policy to a verdict.

``docs/decision.md`` describes the procedure, its formulas and its constants.
"""

from __future__ import annotations

from gate.decide.conclude.accept import is_lack_accepted, keep_own
from gate.decide.conclude.outcome import Coverage, FailOn, compute_exit_code, list_open, measure_coverage
from gate.decide.constants import LOOKS
from gate.decide.evidence.pairs import list_pairs
from gate.decide.evidence.values import collect_values, compute_values
from gate.decide.side_by_side import confirm_screening, decide_side_by_side, judge_pairs
from gate.decide.stats import estimate_metric
from gate.decide.suspects import (
    Suspect,
    clear_unchanged_sources,
    list_suspects,
    list_unchanged_sources,
    list_unsettled,
    rank_suspect,
)
from gate.decide.verdict import Screening, conclude_verdict, decide_verdict, screen_run
