"""The check of torch's wheels for CUDA, on the torch that is here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch

TOOL = Path(__file__).parents[2] / "tools" / "check_cuda_wheel.py"


def test_a_wheel_for_cpus_lacks_what_only_one_for_cuda_has() -> None:
    """Names, fields and documented keys are in the torch that is here, whatever it is built for."""
    done = subprocess.run([sys.executable, str(TOOL)], capture_output=True, text=True, check=False)
    head, *problems = done.stdout.splitlines()
    assert str(torch.__version__) in head, done.stderr
    of_cuda = ("is not built for CUDA", "triton cannot be imported", "torch._C has no _CudaDeviceProperties")
    rest = [one for one in problems if not any(known in one for known in of_cuda)]
    assert rest in ([], ["nothing is missing"])
