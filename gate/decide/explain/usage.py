"""What a call's time goes to on its device: which kernels changed, and what bounds it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from gate.records import AFTER, BEFORE, LIMITS, PLACES, Code, Fact

# More of a call is idle than busy. Where that is so, faster kernels gain little: the host is waited for.
_IDLE = 0.5
# Of the time that a limit allows at best. A kernel that reaches less is bound by something that neither
# rate of the machine tells, as small or irregular work is.
_BOUND = 0.3
_NOTABLE = 0.01  # of a call's device time: kernels that moved by less explain no change beyond 3 %


def compare_kernels(before: Mapping[str, float], after: Mapping[str, float]) -> Fact | None:
    """Tell which kernels take another time than before, most first; ``None`` where one side knows none."""
    if not before or not after:
        return None
    changes = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in {**before, **after}}
    notable_s = _NOTABLE * sum(before.values())
    moved = [name for name, change in changes.items() if abs(change) > notable_s]
    moved.sort(key=lambda name: abs(changes[name]), reverse=True)
    if not moved:
        return Fact(code=Code.KERNELS_STEADY)
    named = moved[: len(PLACES)]
    sides = ((BEFORE, before), (AFTER, after))
    own_s = {
        place + moment: side[name]
        for place, name in zip(PLACES, named, strict=False)
        for moment, side in sides
        if name in side
    }
    total_s = {"before_s": sum(before.values()), "after_s": sum(after.values()), "moved": len(moved)}
    return Fact(code=Code.KERNELS_MOVED, numbers={**total_s, **own_s}, names={"kernels": tuple(named)})


def find_bound(call_s: float, busy: float | None, limits_s: Mapping[str, float]) -> Fact | None:
    """Find what a call of ``call_s`` seconds is bound by; ``None`` where nothing is known.

    ``busy`` is the share of it in which a GPU ran kernels, ``limits_s`` the least that it takes by each of
    the machine's own rates.
    """
    if busy is not None and busy < _IDLE:
        return Fact(code=Code.DEVICE_IDLE, numbers={"busy": busy})
    known_s = {name: limits_s[name] for name in LIMITS if name in limits_s}
    if not known_s or not call_s:
        return None
    limit = max(known_s, key=lambda name: known_s[name])
    share = min(1.0, known_s[limit] / call_s)
    return Fact(code=Code.BOUND_BY if share >= _BOUND else Code.BOUND_BY_NEITHER, numbers={limit: share})
