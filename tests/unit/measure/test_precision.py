"""TF32 by either interface, on torch's own settings: each test in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

PLAY = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
from gate.measure.precision import bakes_tf32, describe_convolution, describe_matmul, describe_settings
from gate.measure.precision import without_tf32
b = torch.backends
SETTINGS = (b.cudnn, b.cudnn.conv, b.cudnn.rnn, b.cuda.matmul, b.mkldnn.matmul)

def read():
    told = [one.fp32_precision for one in SETTINGS]
    matmul = b.cuda.matmul
    for ask in (torch.get_float32_matmul_precision, lambda: b.cudnn.allow_tf32, lambda: matmul.allow_tf32):
        try:
            told.append(ask())
        except RuntimeError:
            told.append("raises")
    return told

exec(sys.argv[1])
before = read()
with without_tf32():
    assert not {"tf32", "bf16"} & set(one.fp32_precision for one in SETTINGS), read()
    # Dynamo's guards and users' own code read the older interface in every call.
    assert read()[-3:] == ["highest", False, False], read()
assert read() == before, (before, read())
assert describe_settings("cuda").startswith(f"float32 products {describe_matmul()}, TF32 in")
print(describe_matmul(), describe_convolution(), bakes_tf32(), sep="; ")
"""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("", "highest; True; False"),
        ("torch.set_float32_matmul_precision('high')", "high; True; False"),
        ("torch.set_float32_matmul_precision('medium')", "medium; True; False"),
        ("b.cudnn.allow_tf32 = False", "highest; False; False"),
        ("b.cuda.matmul.fp32_precision = 'tf32'", "tf32; True; False"),
        ("b.cudnn.conv.fp32_precision = 'ieee'", "highest; conv ieee, rnn tf32; False"),
        ("b.cudnn.fp32_precision = 'tf32'", "tf32; True; True"),
        ("b.fp32_precision = 'tf32'", "tf32; True; True"),
        (
            "b.cuda.matmul.fp32_precision = 'tf32'; b.cudnn.conv.fp32_precision = 'ieee'",
            "tf32; conv ieee, rnn tf32; False",
        ),
    ],
)
def test_tf32_is_off_within_and_as_it_was_after(said: str, told: str) -> None:
    """However a user has set it, drift is measured without TF32, and afterwards all is as it was.

    What PyTorch recommends to write since 2.9 failed every warm process.
    """
    done = subprocess.run([sys.executable, "-c", PLAY, said], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, told), done.stderr
