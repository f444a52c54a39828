"""How long to wait before GitHub is asked again, by its own answer."""

from __future__ import annotations

import email.utils

from gate.github.transport import Response

SECONDARY_WAIT_S = 60.0  # GitHub's advice where a secondary limit names no time


def compute_wait_s(response: Response, limits: int, now: float) -> float | None:
    """Compute the seconds that GitHub asks to wait; None where it does not ask, and repeating is vain.

    ``limits`` is how many limits were met before; ``now`` is used where the answer has no date.
    """
    if response.status not in (403, 429):
        return None
    served = _parse_date(response.headers.get("Date", "")) or now
    asked = response.headers.get("Retry-After", "").strip()
    if asked.isdecimal() and len(asked) < _SECONDS_DIGITS:
        return max(1.0, float(asked))
    if date := _parse_date(asked):
        return max(1.0, date - served)
    reset = response.headers.get("x-ratelimit-reset", "").strip()
    if (
        response.headers.get("x-ratelimit-remaining") == "0"
        and reset.isdecimal()
        and len(reset) < _SECONDS_DIGITS
    ):
        return max(1.0, float(reset) - served + 1.0)  # the reset is told in whole seconds
    if response.status == 429 or b"secondary rate limit" in response.body.lower():  # noqa: PLR2004 -- HTTP
        return SECONDARY_WAIT_S * float(2**limits)
    return None


_SECONDS_DIGITS = 12  # seconds since the epoch have 10; more is nonsense that float() could not take


def _parse_date(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
