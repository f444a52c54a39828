"""How grave a change is, so that metrics in different units can be put in order; pure."""

from __future__ import annotations

from gate.records import Comparison, Status

# Where nothing is tolerated, one unit is as grave as a change of so many limits.
_UNIT_SEVERITY = 10.0


def compute_severity(comparison: Comparison) -> float:
    """Compute how many limits the change is, + is worse; 0 of what does not decide or did not change."""
    change, threshold = comparison.change, comparison.threshold
    if change is None or not comparison.decides or comparison.status is Status.UNCHANGED:
        return 0.0
    bar = (threshold.relative or threshold.absolute) if threshold else 0.0
    return change.centre / bar if bar else _UNIT_SEVERITY * change.centre
