"""The check of torch's CUDA wheels, with the installed torch."""

import re
import subprocess
import sys
from itertools import chain
from pathlib import Path

import torch
from check_cuda_wheel import CALLED, COUNTERS, METRICS

import gate
from gate.measure import graph

TOOL = Path(__file__).parents[2] / "tools" / "check_cuda_wheel.py"
SOURCES = [path.read_text(encoding="utf-8") for path in Path(gate.__file__).parent.rglob("*.py")]


def test_a_wheel_for_cpus_lacks_what_only_one_for_cuda_has() -> None:
    """Names, fields and documented keys are in any torch."""
    done = subprocess.run([sys.executable, str(TOOL)], capture_output=True, text=True, check=False)
    head, *problems = done.stdout.splitlines()
    assert str(torch.__version__) in head, done.stderr
    of_cuda = ("is not built for CUDA", "triton cannot be imported", "torch._C has no _CudaDeviceProperties")
    rest = [problem for problem in problems if not any(words in problem for words in of_cuda)]
    assert rest in ([], ["nothing is missing"])


def test_whatever_the_gate_asks_torch_for_is_checked() -> None:
    """The check covers each name that the gate uses on a card."""
    for module in ("torch.cuda", "torch.profiler"):
        asked = set(re.findall(rf"\b{re.escape(module)}\.(\w+)", "".join(SOURCES)))
        assert asked
        assert asked <= CALLED[module].keys()
    assert {*graph._PHASES.values(), "num_triton_bundles"} <= set(METRICS)
    # Of what cannot be cached torch counts in several places; a group is known by what was found and missed.
    caches = {f"{prefix}_{end}" for _, prefix in graph._CACHES.values() for end in ("hit", "miss")}
    assert caches | {"cudagraph_skips", "cudagraph_partitions"} == set(chain(*COUNTERS.values()))
