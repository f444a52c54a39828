"""What a GPU cannot run follows from its reported properties."""

import pytest

from gate.project.capability import Card, list_unavailable
from gate.records.cases import Case, DType, Kind
from gate.records.codes import Code
from gate.records.facts import Fact

H200 = Card(capability="9.0", memory_gib=140.0)
T4 = Card(capability="7.5", memory_gib=15.0)
NO_BFLOAT16 = Fact(code=Code.NO_BFLOAT16, numbers={"capability": 7.5, "needed": 8.0})


@pytest.mark.parametrize(
    ("case", "card", "why"),
    [
        (Case(id="m/x", model="m", kind=Kind.DISTRIBUTED), H200, Fact(code=Code.NO_GPU_EACH)),
        (Case(id="m/x", model="m", kind=Kind.DISTRIBUTED), Card(), None),  # a processor has room for both
        (Case(id="m/x", model="m", dtype=DType.BFLOAT16), T4, NO_BFLOAT16),
        (Case(id="m/x", model="m", dtype=DType.BFLOAT16), H200, None),
        (Case(id="m/x", model="m", dtype=DType.BFLOAT16), Card(capability="12.0"), None),
        (Case(id="m/x", model="m", dtype=DType.BFLOAT16), Card(capability="new"), None),
        (
            Case(id="m/x", model="m", gpu_memory_gib=16),
            T4,
            Fact(code=Code.TOO_LITTLE_MEMORY, numbers={"gib": 15.0, "needed_gib": 16}),
        ),
        (Case(id="m/x", model="m", gpu_memory_gib=16), H200, None),
    ],
)
def test_what_a_card_cannot_run_is_reported(case: Case, card: Card, why: Fact | None) -> None:
    """Two processes, a type that it lacks, more memory than it has; a CPU has no such limits."""
    assert list_unavailable([case], card) == ({"m/x": why} if why else {})


def test_what_a_case_needs_and_is_absent_is_reported_first() -> None:
    """Without the packages the card does not matter."""
    case = Case(id="m/x", model="m", dtype=DType.BFLOAT16, needs=("timm", "einops"))
    lacking = Fact(code=Code.PACKAGES_LACKING, names={"packages": ("timm", "einops")})
    assert list_unavailable([case], T4, {"timm", "einops", "onnx"}) == {"m/x": lacking}
