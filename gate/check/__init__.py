"""The procedure of a check, over anything that measures: processes, recorded trials, or drawn ones.

::

    checked = check_against_base(measurer, run, CheckTerms(baselines=baselines, policy=policy))

``run`` has the plan's first trials. Pure but for what the measurer does.
"""

from __future__ import annotations

from gate.check.pair_schedule import count_pairs
from gate.check.procedure import (
    Checked,
    CheckTerms,
    PairMeasurer,
    Rehearsal,
    check_against_base,
    check_against_baselines,
    check_pairs,
    judge_recorded,
    list_unfinished,
    make_need,
    settle_pairs,
)
from gate.check.schedule import Slot, want_whole
