"""Numerical drift: how much further from float64 compiled code is than eager code.

``log2(RMSE(y64, compiled) / RMSE(y64, eager))``: 0 means as good as eager, 1 means twice the
error. Both errors are relative to the reference's own size and floored, so that exact results do not divide
by zero.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from gate.measure.failures import NotFiniteError
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.protocol import Side

# Errors below a sixteenth of a rounding step, relative to the reference, count as none.
FLOOR_STEPS = 1 / 16
# The error of few elements means little: the log ratio of n of them varies by about 1.4 / sqrt(n)
# whenever rounding changes. Outputs below this size are judged together.
MIN_ELEMENTS = 256
# Below this size even the group means little: when code is generated anew and rounds otherwise, no worse,
# the mean ratio of two seeds is beyond the threshold of 0.58 by chance in 34 of 100 cases with one element,
# 15 with 4, 6.5 with 8, 1.4 with 16 and 0.1 with 32 (errors independent and of equal size, simulated).
# What chance gives is therefore not counted: with the allowance at most 0.7 of 100 are beyond it.
FEW_ELEMENTS = 32
# What ought to be zero (the gradient of a bias in front of a normalization) is rounding noise in all
# three programs. Tensors this much smaller than the rest are measured against that share of the rest, not
# themselves, and against all of the rest where eager has lost half of their digits.
MIN_RELATIVE_SIZE = 1e-3
# Where no float64 is there to compare with, compiled may be so many rounding steps from eager, relative to
# the output's RMS. Sums in another order differ by some 10 steps in a deep model of float32 and by 100 where
# it loses digits: a thousand, 1e-4, is beyond rounding. In 16 bits each layer rounds, and deep models differ
# by 3 to 5 steps; sixteen are 12 % of bfloat16 and 1.6 % of float16.
FAR_STEPS = 1000.0
FAR_STEPS_HALF = 16.0
_HALF_STEP = 2**-16  # between the steps of float32 and of the types of 16 bits
LARGEST_STEP = torch.finfo(torch.bfloat16).eps  # that anything is computed in: 8 bits are stored, no more
# Stands for "another answer": an integer or boolean output that differs, or another shape or dtype. No
# rounding comes near it, and it is a number, so it is judged like any drift.
MISMATCH = 64.0

# What is to be done about an infinity.
_MEANT = (
    "one that is meant, as a mask's, must be the same in float64, eager and compiled, beside finite values: "
    "else mask it in the factory's forward"
)

Outputs = Mapping[str, torch.Tensor]


@dataclass(frozen=True, kw_only=True, slots=True)
class Drift:
    log2_ratio: float | None  # None: nothing is finite in float64, so what is right is unknown
    worst: str = ""  # the output or gradient that it is mostly of
    steps: float = 0.0  # the relative error of compiled in the worst group, in rounding steps of its type
    beyond: float | None = None  # log2 of that over what rounding may cost; None: not computed
    warnings: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class Triple:
    name: str
    reference: torch.Tensor
    eager: torch.Tensor
    compiled: torch.Tensor


def compute_drift(
    reference: Outputs, eager: Outputs, compiled: Outputs, *, pooled: bool = False, step: float = 0.0
) -> Drift:
    """Compute the drift of the worst output, or of all together when ``pooled`` (gradients are).

    ``step`` is the rounding step of the lowest type that computes. Shared infinities are right, but not in
    gradients; where the reference alone is not finite, elements are dropped with a warning.

    Raises:
        NotFiniteError: An eager or compiled output holds NaN, or an infinity that the others do not share.
    """
    if not pooled:
        reference, eager, compiled = _drop_shared_infinities(reference, eager, compiled)
    check_finite(eager, Side.EAGER)
    check_finite(compiled, Side.COMPILED)
    rounded = [name for name in eager if name in compiled and is_rounded(eager[name])]
    alone = [name for name in rounded if name not in reference or reference[name].shape != eager[name].shape]
    mismatches = (*list_mismatches(eager, compiled), *list_far(eager, compiled, alone, step))
    if mismatches:
        return Drift(log2_ratio=MISMATCH, worst=mismatches[0].name("output"), warnings=mismatches)
    reshaped = [_describe_reshaped(name, reference[name], eager[name]) for name in alone if name in reference]
    sides = (reference, eager, compiled)
    triples = [Triple(name, *(_split(side[name]) for side in sides)) for name in rounded if name not in alone]
    judgeable, unknown = _split_known(triples)
    warnings = (*reshaped, *unknown)
    if (warnings or alone) and not judgeable:
        return Drift(log2_ratio=None, warnings=warnings)
    drifts = list(filter(None, map(judge_group, group_triples(judgeable, pooled=pooled))))
    worst = max(drifts, key=lambda drift: drift.log2_ratio or 0.0, default=Drift(log2_ratio=0.0))
    return replace(worst, warnings=warnings)


def _split_known(triples: Sequence[Triple]) -> tuple[list[Triple], list[Fact]]:
    judgeable, unknown = [], []
    for triple in triples:
        taken = triple
        if not is_finite(triple.reference):
            finite = torch.isfinite(make_plain(triple.reference))
            numbers = {"unknown": int((~finite).sum()), "elements": finite.numel()}
            names = name_words(output=triple.name)
            unknown.append(Fact(code=Code.REFERENCE_NOT_FINITE, numbers=numbers, names=names))
            sides = (triple.reference, triple.eager, triple.compiled)
            taken = Triple(triple.name, *(side[finite] for side in sides))
        if taken.reference.numel():
            judgeable.append(taken)
    return judgeable, unknown


def _describe_reshaped(name: str, reference: torch.Tensor, eager: torch.Tensor) -> Fact:
    names = name_words(output=name, eager=describe_tensor(eager), exact=describe_tensor(reference))
    return Fact(code=Code.REFERENCE_RESHAPED, names=names)


def _drop_shared_infinities(
    reference: Outputs, eager: Outputs, compiled: Outputs
) -> tuple[Outputs, Outputs, Outputs]:
    """Drop elements that are the same infinity in all that have them, unless all elements are."""
    sides = ({**reference}, {**eager}, {**compiled})
    for name, left in eager.items():
        right, exact = compiled.get(name), reference.get(name)
        if right is None or not left.is_floating_point() or left.shape != right.shape or is_finite(left):
            continue
        present = [side for side in sides if name in side and side[name].shape == left.shape]
        shared = (infinite := torch.isinf(left)) & (left == right)
        if exact is not None and exact.shape == left.shape:
            meant = infinite & (left == exact)
            if torch.equal(meant, infinite) and not torch.equal(shared, infinite):
                message = f"infinity in {name} of the compiled call is not that of float64 and eager"
                raise NotFiniteError(f"{message}; {_MEANT}")
            shared &= meant
        if bool(shared.any()) and not bool(shared.all()):
            for side in present:
                side[name] = side[name][~shared]
    return sides


def group_triples(triples: Sequence[Triple], *, pooled: bool) -> list[list[Triple]]:
    if pooled:
        return [list(triples)] if triples else []
    small = [triple for triple in triples if triple.eager.numel() < MIN_ELEMENTS]
    large = [[triple] for triple in triples if triple.eager.numel() >= MIN_ELEMENTS]
    return [*large, small] if small else large


def judge_group(group: Sequence[Triple]) -> Drift | None:
    """Compute the drift of a group; for few elements, what is beyond chance, ``None`` if nothing is."""
    elements = sum(triple.reference.numel() for triple in group)
    if not elements:
        return None
    drift = compare_group(group)
    if elements >= FEW_ELEMENTS or drift.log2_ratio is None:
        return drift
    excess = drift.log2_ratio - compute_allowance(elements)
    return replace(drift, log2_ratio=excess) if excess > 0 else None


def compute_allowance(elements: int) -> float:
    """Compute how far the log2 ratio of so few elements (1 at least) may be off by chance, beyond 0.58.

    Fitted to the 99.9th percentile of the mean of two seeds: 5.9 for 1, 3.3 for 2, 1.9 for 4, 1.2 for 8.
    """
    return 3.0 / elements + 2.7 / math.sqrt(elements) - 0.57


def compare_group(group: Sequence[Triple]) -> Drift:
    elements = sum(triple.reference.numel() for triple in group)
    step = max(torch.finfo(triple.eager.dtype).eps for triple in group)
    references = [triple.reference.double() for triple in group]
    squares = [
        tuple(float((value.double() - exact).square().sum()) for value in (triple.eager, triple.compiled))
        for triple, exact in zip(group, references, strict=True)
    ]
    lost = [
        math.sqrt(of_eager) > math.sqrt(step) * float(exact.norm())
        for (of_eager, _), exact in zip(squares, references, strict=True)
    ]
    sizes = _compute_sizes(references, lost)
    relative = [[square / size**2 for square in pair] for pair, size in zip(squares, sizes, strict=True)]
    eager, compiled = (
        max(step * FLOOR_STEPS, math.sqrt(sum(side) / elements)) for side in zip(*relative, strict=True)
    )
    worst = max(range(len(group)), key=lambda index: relative[index][1] - relative[index][0])
    return Drift(log2_ratio=math.log2(compiled / eager), worst=group[worst].name, steps=compiled / step)


def check_finite(outputs: Outputs, side: Side) -> None:
    """Check that floating-point outputs are finite.

    Raises:
        NotFiniteError: One is not; names it and the side.
    """
    for name, value in outputs.items():
        if is_rounded(value) and not is_finite(value):
            if bool(torch.isnan(value).any()):
                raise NotFiniteError(f"NaN in {name} of the {side} call")
            raise NotFiniteError(f"infinity in {name} of the {side} call; {_MEANT}")


def check_any_finite(outputs: Outputs, side: Side) -> None:
    """Check that floating-point outputs hold no NaN, and are not infinite all over.

    Raises:
        NotFiniteError: One does, or is; names it and the side.
    """
    for name, value in outputs.items():
        if not is_rounded(value):
            continue  # of quantized numbers torch does not know that
        value = make_plain(value)  # noqa: PLW2901 - the same elements
        is_infinite = value.numel() and not bool(torch.isfinite(value).any())
        if is_infinite or bool(torch.isnan(value).any()):
            check_finite({name: value}, side)


def list_mismatches(eager: Outputs, compiled: Outputs) -> tuple[Fact, ...]:
    missing = sorted(eager.keys() ^ compiled.keys())
    facts = [Fact(code=Code.OUTPUT_LOST, names=name_words(output=name)) for name in missing]
    for name in (name for name in eager if name in compiled):
        left, right = eager[name], compiled[name]
        if left.shape != right.shape or left.dtype != right.dtype:
            names = name_words(output=name, eager=describe_tensor(left), compiled=describe_tensor(right))
            facts.append(Fact(code=Code.OUTPUT_RESHAPED, names=names))
        elif not is_rounded(left) and not torch.equal(left, right):
            names = name_words(output=name, dtype=str(left.dtype).removeprefix("torch."))
            numbers = _measure_difference(left, right)
            facts.append(Fact(code=Code.OUTPUT_DIFFERS, numbers=numbers, names=names))
    return tuple(facts)


def _measure_difference(left: torch.Tensor, right: torch.Tensor) -> dict[str, float]:
    differing = left != right
    numbers = {"elements": float(differing.sum()), "of": float(left.numel())}
    if left.dtype == torch.bool:
        return numbers
    return {"most": float((left[differing].double() - right[differing].double()).abs().max()), **numbers}


def list_far(eager: Outputs, compiled: Outputs, names: Sequence[str], least: float) -> tuple[Fact, ...]:
    """List outputs that no reference judges, and that are further from eager's than rounding explains.

    ``least`` is the smallest rounding step: many models of 16 bits cast the loss to float32.
    """
    facts = []
    same = [name for name in names if eager[name].shape == compiled[name].shape]
    values = [_split(eager[name]).double() for name in same]
    for name, value, size in zip(same, values, _compute_sizes(values), strict=True):
        step = max(least, torch.finfo(eager[name].dtype).eps)
        limit = step * (FAR_STEPS if step < _HALF_STEP else FAR_STEPS_HALF)
        error = (
            (_split(compiled[name]).double() - value).square().mean().sqrt().item() / size
            if value.numel()
            else 0.0
        )
        if error > limit:
            numbers = {"error": error, "limit": limit}
            facts.append(Fact(code=Code.OUTPUT_FAR, numbers=numbers, names=name_words(output=name)))
    return tuple(facts)


def describe_tensor(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def compute_checksum(outputs: Outputs) -> str:
    split = (_split(value).double() for value in outputs.values() if is_rounded(value))
    values = [value[~torch.isinf(value)] for value in split]
    elements = sum(value.numel() for value in values)
    squares = sum(float(value.square().sum()) for value in values)
    return f"{math.sqrt(squares / elements):.6g}" if elements else ""


def is_finite(value: torch.Tensor) -> bool:
    """Whether all elements are: their sum in float64 is, but for some that only float64 can hold."""
    wide = torch.complex128 if value.is_complex() else torch.float64
    return bool(torch.isfinite(value.sum(dtype=wide))) or bool(torch.isfinite(make_plain(value)).all())


def make_plain(value: torch.Tensor) -> torch.Tensor:
    """Copy into a strided tensor what is sparse or nested, and into float32 what has 8 bits."""
    if value.is_nested:
        parts = [part.flatten() for part in value.unbind()]
        return torch.cat(parts) if parts else torch.empty(0)
    value = value if value.layout == torch.strided else value.to_dense()
    return value.float() if value.is_floating_point() and value.itemsize == 1 else value


def is_rounded(value: torch.Tensor) -> bool:
    return value.is_floating_point() or value.is_complex()


def _split(value: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


def _compute_sizes(references: list[torch.Tensor], lost: Sequence[bool] = ()) -> list[float]:
    squares = [float(reference.square().sum()) for reference in references]
    elements = sum(reference.numel() for reference in references)
    rest = math.sqrt(sum(squares) / max(1, elements))
    sizes = (
        max(rest * (1.0 if is_lost else MIN_RELATIVE_SIZE), math.sqrt(total / max(1, reference.numel())))
        for total, reference, is_lost in zip(squares, references, lost or [False] * len(squares), strict=True)
    )
    return [size or 1.0 for size in sizes]
