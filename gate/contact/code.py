"""Code: that what is generated is the same again, and that precision is what the gate sets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from gate.contact.assumptions import CPU, CUDA, Place, assume
from gate.contact.findings import AssumptionResult, claim, expect_range, tell
from gate.measure.compiler import graph, identity
from gate.measure.device import precision
from gate.measure.device.opening import open_device
from gate.measure.timing.rounds import settle_step

_ASK = "import sys; from gate.contact.code import print_identity; print_identity(*sys.argv[1:])"
_LIMIT_S = 140  # of one process that imports torch and compiles one graph
_EDGE = 512
_STEPS = 5


def print_identity(device: str) -> None:
    """Compile a small graph in this process, and print the identity of its code as JSON, last."""
    opened = open_device(device)
    value = torch.randn(_EDGE, _EDGE, device=opened.name)
    compiled = torch.compile(lambda one: (one @ one).sin().softmax(-1).sum())
    settle_step(lambda: compiled(value), opened, _STEPS)
    found = identity.read_identity(graph.find_cache())
    sys.stdout.write(f"{json.dumps(asdict(found))}\n")


@assume(judged=(CPU, CUDA), limit_s=300)
def identity_is_the_same_twice(place: Place) -> dict[str, AssumptionResult]:
    """Two processes with caches of their own generate the same code for one program, kernel by kernel."""
    first, second = (_ask_identity(place, number) for number in (1, 2))
    place.keep("identities.json", [first, second])
    return {
        "digest": claim(bool(first["digest"]) and first["digest"] == second["digest"], first["digest"]),
        "kernels": claim(first["kernels"] == second["kernels"], first["kernels"]),
        "tuned": tell("the same" if first["tuned"] == second["tuned"] else "otherwise"),
    }


def _ask_identity(place: Place, number: int) -> dict[str, object]:
    cache = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).parent / f"identity-{number}"
    places = {"TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"), "TRITON_CACHE_DIR": str(cache / "triton")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", _ASK, place.name],
        env={**os.environ, **places},
        capture_output=True,
        text=True,
        check=True,
        timeout=_LIMIT_S,
    )
    told: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return told


@assume(judged=(CPU, CUDA))
def without_tf32_means_float32(place: Place) -> dict[str, AssumptionResult]:
    """Where the gate turns TF32 off, a product of float32 is as good as float32 is: 1e-6 of its size.

    Whichever of torch's two interfaces a user has set before.
    """
    found = {}
    for name, allow in _ALLOWING.items():
        allow()
        with precision.without_tf32():
            found[name] = expect_range(_measure_error(place), 0.0, 1e-6)
    torch.set_float32_matmul_precision("highest")
    return found


def _allow_by_word() -> None:
    torch.set_float32_matmul_precision("high")


def _allow_by_property() -> None:
    torch.backends.cuda.matmul.fp32_precision = "tf32"


_ALLOWING = {"by the older interface": _allow_by_word, "by the newer": _allow_by_property}


@assume(CUDA)
def tf32_shows_in_drift(place: Place) -> AssumptionResult:
    """With TF32 a product of float32 is worse by far: 1e-5 of its size at least, on a card that has it."""
    torch.set_float32_matmul_precision("high")
    error = _measure_error(place)
    torch.set_float32_matmul_precision("highest")
    capability = tuple(map(int, place.device.identify().traits["capability"].split(".")))
    return (
        expect_range(error, 1e-5, 1e-2) if capability >= (8, 0) else tell(f"{error:.2g}: this card has none")
    )


def _measure_error(place: Place) -> float:
    """Measure the error of a product in float32 against float64, relative to its size."""
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(_EDGE, _EDGE, generator=generator).to(place.device.name)
    exact = left.double() @ left.double()
    return float(((left @ left).double() - exact).norm() / exact.norm())
