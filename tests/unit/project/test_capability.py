"""What a GPU cannot run is known from what it tells of itself."""

from __future__ import annotations

import pytest

from gate.project.capability import Card, list_unavailable
from gate.records import Case, DType, Kind

H200 = Card(capability="9.0", memory_gib=140.0)
T4 = Card(capability="7.5", memory_gib=15.0)


@pytest.mark.parametrize(
    ("case", "card", "why"),
    [
        (Case(id="m/x", model="m", kind=Kind.DISTRIBUTED), H200, "workers see one"),
        (Case(id="m/x", model="m", kind=Kind.DISTRIBUTED), Card(), ""),  # a processor has room for both
        (Case(id="m/x", model="m", dtype=DType.BFLOAT16), T4, "compiles no bfloat16"),
        (Case(id="m/x", model="m", dtype=DType.BFLOAT16), H200, ""),
        (Case(id="m/x", model="m", gpu_memory_gib=16), T4, "needs 16 GiB"),
        (Case(id="m/x", model="m", gpu_memory_gib=16), H200, ""),
    ],
)
def test_what_a_card_cannot_run_is_told(case: Case, card: Card, why: str) -> None:
    """Two processes on one card, a type that it lacks, more memory than it has; nothing of a CPU."""
    found = list_unavailable([case], card)
    assert (why in found["m/x"]) if why else not found
