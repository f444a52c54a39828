"""Drift: compiled's error against float64 over eager's."""

import math
import warnings

import pytest
import torch

from gate.measure.failures import NotFiniteError
from gate.measure.numerics.drift import (
    FLOOR_STEPS,
    MISMATCH,
    Triple,
    check_any_finite,
    check_finite,
    compare_group,
    compute_allowance,
    compute_checksum,
    compute_drift,
    describe_tensor,
    group_triples,
)
from gate.records.protocol import Side
from tests.words import describe_measuring

SIZE = 1000


def make_outputs(error: float) -> dict[str, torch.Tensor]:
    """Return one output of ones, each of which is off by ``error``."""
    return {"output": torch.ones(SIZE, dtype=torch.float32) + error}


REFERENCE = {"output": torch.ones(SIZE, dtype=torch.float64)}


def test_four_times_the_error_is_two() -> None:
    """log2(0.25 / 0.0625) is 2; both errors are exact in float32."""
    drift = compute_drift(REFERENCE, make_outputs(0.0625), make_outputs(0.25))
    assert drift.log2_ratio == pytest.approx(2.0)


def test_half_the_error_is_minus_one() -> None:
    """Compiled code that is more exact than eager has negative drift."""
    drift = compute_drift(REFERENCE, make_outputs(0.25), make_outputs(0.125))
    assert drift.log2_ratio == pytest.approx(-1.0)


def test_exact_results_meet_the_floor() -> None:
    """An eager error of 0 counts as a sixteenth of a rounding step: 2^-23 / 16 = 2^-27 in float32."""
    drift = compute_drift(REFERENCE, make_outputs(0.0), make_outputs(0.25))
    assert FLOOR_STEPS * torch.finfo(torch.float32).eps == 2**-27
    assert drift.log2_ratio == pytest.approx(-2 + 27)


def test_both_exact_is_zero() -> None:
    """Nothing lost on either side is no drift."""
    assert compute_drift(REFERENCE, make_outputs(0.0), make_outputs(0.0)).log2_ratio == 0.0


def test_error_is_relative_to_the_reference() -> None:
    """An output and its errors scaled by 1000 have the same drift, floor included."""
    reference = torch.full((SIZE,), 1000.0, dtype=torch.float64)
    eager, compiled = torch.full((SIZE,), 1000.0), torch.full((SIZE,), 1250.0)
    group = [Triple("output", reference, eager, compiled)]
    assert compare_group(group).log2_ratio == pytest.approx(-2 + 27)


def test_worst_output_counts() -> None:
    """With a good and a bad large output the bad one decides."""
    reference = {"a": REFERENCE["output"], "b": REFERENCE["output"]}
    eager = {"a": make_outputs(0.25)["output"], "b": make_outputs(0.25)["output"]}
    compiled = {"a": make_outputs(0.25)["output"], "b": make_outputs(0.5)["output"]}
    drift = compute_drift(reference, eager, compiled)
    assert (drift.log2_ratio, drift.worst) == (pytest.approx(1.0), "b")
    assert drift.steps == pytest.approx(0.5 * 2**23)


def test_the_worst_of_a_group_is_named() -> None:
    """Pooled gradients have one drift, of -2 and 0 in size; compiled is further off in "b"."""
    reference = {"a": REFERENCE["output"], "b": REFERENCE["output"]}
    eager = {"a": make_outputs(0.25)["output"], "b": make_outputs(0.25)["output"]}
    compiled = {"a": make_outputs(0.25)["output"], "b": make_outputs(0.5)["output"]}
    assert compute_drift(reference, eager, compiled, pooled=True).worst == "b"
    assert compute_drift(reference, eager, {**compiled, "a": torch.ones(2)}, pooled=True).worst == "a"


def test_small_outputs_are_judged_together() -> None:
    """Outputs of few elements form one group, each large one its own."""
    sizes = (4, 1000, 5, 256)
    triples = [Triple("output", t, t, t) for t in map(torch.ones, sizes)]
    grouped = [[triple.eager.numel() for triple in group] for group in group_triples(triples, pooled=False)]
    assert [[1000], [256], [4, 5]] == grouped


def draw_drifts(elements: int, requests: int) -> list[float]:
    """Change of drift over two seeds when code is generated anew: errors of equal size, and independent."""
    generator = torch.Generator().manual_seed(elements)
    reference = {"output": torch.ones(elements, dtype=torch.float64)}

    def draw() -> dict[str, torch.Tensor]:
        return {"output": 1.0 + 0.01 * torch.randn(elements, generator=generator, dtype=torch.float64)}

    changes = []
    for _ in range(requests):
        change = 0.0
        for _ in range(2):
            eager = draw()
            before, after = (compute_drift(reference, eager, draw()).log2_ratio or 0.0 for _ in range(2))
            change += (after - before) / 2
        changes.append(change)
    return changes


@pytest.mark.parametrize("elements", [1, 4, 10, 32])
def test_other_rounding_of_few_elements_is_no_regression(elements: int) -> None:
    """Of 300 changes of rounding alone at most 6 are beyond 0.58; with one element 102 were."""
    assert sum(change > 0.58 for change in draw_drifts(elements, 300)) <= 6


def test_fault_in_few_elements_is_seen() -> None:
    """Ten elements with 16 times the error are 4 - A(10) = 4 - 0.58 beyond chance."""
    reference = {"output": torch.ones(10, dtype=torch.float64)}
    eager, compiled = ({"output": reference["output"] + error} for error in (2**-8, 2**-4))
    assert compute_allowance(10) == pytest.approx(0.584, abs=0.001)
    assert compute_drift(reference, eager, compiled).log2_ratio == pytest.approx(4 - 0.584, abs=0.001)


def test_few_elements_within_chance_leave_the_rest_alone() -> None:
    """A single element, eight times worse by chance, does not hide that the large output is half as bad."""
    reference = {"large": REFERENCE["output"], "loss": torch.ones(1, dtype=torch.float64)}
    eager = {"large": make_outputs(0.25)["output"], "loss": torch.ones(1) + 2**-8}
    compiled = {"large": make_outputs(0.125)["output"], "loss": torch.ones(1) + 2**-5}
    assert compute_drift(reference, eager, compiled).log2_ratio == pytest.approx(-1.0)


def test_gradients_that_should_be_zero_do_not_decide() -> None:
    """Pooled, a tensor of rounding noise is relative to the others' size."""
    noise = torch.full((SIZE,), 1e-12, dtype=torch.float64)
    reference = {"weight": REFERENCE["output"], "bias": noise}
    eager = {"weight": make_outputs(2**-10)["output"], "bias": torch.zeros(SIZE)}
    compiled = {"weight": make_outputs(2**-10)["output"], "bias": torch.full((SIZE,), 1e-9)}
    assert compute_drift(reference, eager, compiled, pooled=True).log2_ratio == pytest.approx(0.0, abs=0.01)


def test_what_eager_loses_in_rounding_is_measured_against_the_rest() -> None:
    """Eager knows a gradient of 1e-5 to one digit; compiled, ten times as far off, is off by 1e-5 of 1."""
    reference = {"weight": REFERENCE["output"], "bias": torch.full((SIZE,), 1e-5, dtype=torch.float64)}
    eager = {"weight": make_outputs(2**-20)["output"], "bias": torch.full((SIZE,), 1.1e-5)}
    compiled = {"weight": make_outputs(2**-20)["output"], "bias": torch.full((SIZE,), 2e-5)}
    drift = compute_drift(reference, eager, compiled, pooled=True)
    # The squares of 2^-20 and of 1e-5, and of 2^-20 and of 1e-6, over the size of both: sqrt(1 / 2).
    wanted = math.log2(math.hypot(2**-20, 1e-5 * math.sqrt(2)) / math.hypot(2**-20, 1e-6 * math.sqrt(2)))
    assert drift.log2_ratio == pytest.approx(wanted, abs=0.01)
    assert drift.worst == "bias"


@pytest.mark.parametrize(
    ("value", "what"), [(math.nan, "NaN"), (math.inf, "infinity"), (-math.inf, "infinity")]
)
def test_not_finite_is_an_error(value: float, what: str) -> None:
    """NaN and infinity are named with the output and the side."""
    spoilt = torch.ones(3)
    spoilt[1] = value
    with pytest.raises(NotFiniteError, match=rf"^{what} in output\[0\] of the compiled call"):
        check_finite({"output[0]": spoilt}, Side.COMPILED)


def make_masked(value: float, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """Return one output whose first half is ``value`` and the rest 1."""
    return {"output": torch.cat([torch.full((SIZE,), value), torch.ones(SIZE)]).to(dtype)}


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinities_that_all_share_are_no_error(value: float) -> None:
    """A mask of -inf is right on all three sides: the finite half, off by 2^-4 and 2^-2, is judged."""
    reference = make_masked(value, torch.float64)
    eager, compiled = make_masked(value)["output"].clone(), make_masked(value)["output"].clone()
    eager[SIZE:] += 2**-4
    compiled[SIZE:] += 2**-2
    drift = compute_drift(reference, {"output": eager}, {"output": compiled})
    assert drift.log2_ratio == pytest.approx(2.0)
    assert compute_checksum(reference) == "1"


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("pooled", [False, True])
def test_what_float64_does_not_know_hides_no_error(value: float, pooled: bool) -> None:
    """Half of the reference is no number: the other half, off by 2^-4 and 2^-2, is judged, with a warning."""
    eager, compiled = make_masked(1.0), make_masked(1.0)
    eager["output"][SIZE:] += 2**-4
    compiled["output"][SIZE:] += 2**-2
    drift = compute_drift(make_masked(value, torch.float64), eager, compiled, pooled=pooled)
    assert drift.log2_ratio == pytest.approx(2.0)
    (warning,) = map(describe_measuring, drift.warnings)
    assert warning.startswith(f"drift leaves out {SIZE} of 2,000 elements of output")


def test_an_output_that_float64_does_not_know_at_all_leaves_the_others() -> None:
    """It has no error, and does not count in the others' size."""
    reference = {**REFERENCE, "lost": torch.full((SIZE,), math.nan, dtype=torch.float64)}
    eager, compiled = ({**make_outputs(off), "lost": torch.ones(SIZE)} for off in (0.0625, 0.25))
    assert compute_drift(reference, eager, compiled).log2_ratio == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("reference", "eager", "compiled", "side"),
    [
        pytest.param(1.0, -math.inf, -math.inf, "eager", id="an overflow of eager"),
        pytest.param(-math.inf, -math.inf, math.inf, "compiled", id="another sign"),
        pytest.param(-math.inf, -math.inf, 1.0, "compiled", id="compiled lost the mask"),
        pytest.param(-math.inf, 1.0, -math.inf, "compiled", id="an overflow of compiled"),
    ],
)
def test_an_infinity_that_not_all_share_is_an_error(
    reference: float, eager: float, compiled: float, side: str
) -> None:
    """It is named, with what an infinity that is meant must be."""
    outputs = (make_masked(reference, torch.float64), make_masked(eager), make_masked(compiled))
    with pytest.raises(NotFiniteError, match=rf"^infinity in output of the {side} call.*; one that is meant"):
        compute_drift(*outputs)


@pytest.mark.parametrize("pooled", [False, True])
def test_what_is_infinite_all_over_and_gradients_are_errors(pooled: bool) -> None:
    """An output without a finite element shows nothing, and no gradient is meant to be infinite."""
    value = torch.full((SIZE,), math.inf) if not pooled else make_masked(math.inf)["output"]
    with pytest.raises(NotFiniteError, match="infinity in output of the eager call"):
        compute_drift({"output": value.double()}, {"output": value}, {"output": value}, pooled=pooled)


def test_a_first_output_may_hold_infinities_among_finite_values() -> None:
    """Drift shows whether they are meant; NaN, and no finite value at all, are errors."""
    check_any_finite({**make_masked(-math.inf), "none": torch.ones(0)}, Side.EAGER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch is to leave them out
        quantized = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)
    check_any_finite({"quantized": quantized}, Side.EAGER)
    for value, what in ((math.nan, "NaN"), (math.inf, "infinity")):
        with pytest.raises(NotFiniteError, match=rf"^{what} in output of the eager call"):
            check_any_finite({"output": torch.full((3,), value)}, Side.EAGER)
    with pytest.raises(NotFiniteError, match=r"^NaN in output of the eager call"):
        check_any_finite(make_masked(math.nan), Side.EAGER)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(torch.tensor([1, 2, 4]), id="other integers"),
        pytest.param(torch.tensor([1, 2, 3], dtype=torch.int32), id="other dtype"),
        pytest.param(torch.tensor([1, 2]), id="other shape"),
    ],
)
def test_another_answer_is_a_mismatch(other: torch.Tensor) -> None:
    """Integer outputs must be equal; a difference is a large, finite drift."""
    drift = compute_drift({}, {"ids": torch.tensor([1, 2, 3])}, {"ids": other})
    assert drift.log2_ratio == MISMATCH
    assert len(drift.warnings) == 1
    assert drift.warnings[0].name("output") == "ids"


@pytest.mark.parametrize(
    ("dtype", "steps", "is_far"),
    [
        (torch.float32, 999, False),
        (torch.float32, 1002, True),
        (torch.bfloat16, 16, False),
        (torch.bfloat16, 17, True),
        (torch.complex64, 1002, True),
    ],
)
def test_without_a_reference_compiled_is_compared_with_eager(
    dtype: torch.dtype, steps: int, is_far: bool
) -> None:
    """Ones that are off by so many rounding steps of 1: a thousand are allowed, in 16 bits sixteen."""
    eager = {"output": torch.ones(SIZE, dtype=dtype)}
    compiled = {"output": (eager["output"] + steps * torch.finfo(dtype).eps).to(dtype)}
    drift = compute_drift({}, eager, compiled)
    assert drift.log2_ratio == (MISMATCH if is_far else None)
    assert drift.worst == ("output" if is_far else "")


def test_without_a_reference_a_mask_is_no_error() -> None:
    """Infinities that eager and compiled share are meant."""
    assert compute_drift({}, make_masked(-math.inf), make_masked(-math.inf)).log2_ratio is None


def test_an_output_of_another_shape_in_float64_is_compared_with_eager() -> None:
    """A length that depends on rounding is unknown in float64; the rest has its drift."""
    reference = {**REFERENCE, "sound": torch.ones(5, dtype=torch.float64)}
    eager = {**make_outputs(0.25), "sound": torch.ones(6)}
    compiled = {**make_outputs(0.5), "sound": torch.ones(6)}
    drift = compute_drift(reference, eager, compiled)
    assert (drift.log2_ratio, drift.worst) == (pytest.approx(1.0), "output")
    (warning,) = map(describe_measuring, drift.warnings)
    assert warning.startswith(
        "sound is float64[5] in float64 and float32[6] in eager: what is right is not known"
    )
    wrong = compute_drift(reference, eager, {**compiled, "sound": torch.full((6,), 1.01)})
    assert (wrong.log2_ratio, wrong.worst) == (MISMATCH, "sound")


@pytest.mark.parametrize(
    ("eager", "compiled", "warning"),
    [
        (
            torch.tensor([1, 2, 3]),
            torch.tensor([1, 0, 4]),
            "ids differs between eager and compiled: int64, off by 2 at most, in 2 of 3 elements",
        ),
        (
            torch.tensor([True, False]),
            torch.tensor([True, True]),
            "ids differs between eager and compiled: bool, in 1 of 2 elements",
        ),
        (
            torch.tensor([0, 255], dtype=torch.uint8),
            torch.tensor([0, 0], dtype=torch.uint8),
            "ids differs between eager and compiled: uint8, off by 255 at most, in 1 of 2 elements",
        ),
        (
            torch.tensor([1]),
            torch.tensor([1], dtype=torch.int32),
            "ids is of another shape or type compiled than in eager: int32[1], and int64[1] in eager",
        ),
    ],
)
def test_another_answer_shows_by_how_much(eager: torch.Tensor, compiled: torch.Tensor, warning: str) -> None:
    """Of whole numbers, of booleans, of numbers that wrap around, and of another type."""
    assert [
        describe_measuring(fact) for fact in compute_drift({}, {"ids": eager}, {"ids": compiled}).warnings
    ] == [warning]


def test_missing_output_is_a_mismatch() -> None:
    """An output that only one side returns is another answer."""
    drift = compute_drift({}, {"a": torch.ones(2)}, {})
    (warning,) = map(describe_measuring, drift.warnings)
    assert warning == "a is returned by one of eager and compiled only"


def test_checksum_has_six_digits() -> None:
    """The checksum is the root mean square: of 3 and 4 it is sqrt(12.5)."""
    assert compute_checksum({"a": torch.tensor([3.0]), "b": torch.tensor([4.0])}) == "3.53553"


def test_integers_alone_have_no_checksum() -> None:
    """There is no floating-point output to sum."""
    assert compute_checksum({"ids": torch.tensor([1, 2])}) == ""


def test_tensor_is_described() -> None:
    """A tensor is named by dtype and shape."""
    assert describe_tensor(torch.zeros(2, 3, dtype=torch.bfloat16)) == "bfloat16[2, 3]"


def test_complex_outputs_are_rounded_like_others() -> None:
    """Parts that are off by 1e-3 and by 4e-3 are errors whose ratio is 4; they are no other answer."""
    exact = torch.ones(512, dtype=torch.complex128)
    drift = compute_drift(
        {"output": exact},
        {"output": (exact + 1e-3j).to(torch.complex64)},
        {"output": (exact + 4e-3j).to(torch.complex64)},
    )
    assert drift.log2_ratio == pytest.approx(2.0, abs=0.01)
    assert not drift.warnings


def test_a_complex_output_can_be_not_finite() -> None:
    """One part is enough."""
    with pytest.raises(NotFiniteError, match="NaN in output of the eager call"):
        check_finite({"output": torch.tensor([1 + 1j * float("nan")])}, Side.EAGER)
