"""Numbers with limits, and moments."""

from __future__ import annotations

from typing import Annotated

from gate.records.limits import Moment, Range

Natural = Annotated[int, Range(noun="a whole number", minimum=0)]
NotNegative = Annotated[float, Range(minimum=0)]
Time = Annotated[str, Moment()]  # ISO 8601, UTC
