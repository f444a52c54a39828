"""TF32 by either interface, on torch's own settings: each setting in a process of its own."""

import json
import subprocess
import sys

import pytest

PLAY = """
import json, os, sys, traceback, warnings
warnings.simplefilter("ignore")
import torch
from gate.devices import CUDA
from gate.measure.environment import describe_settings
from gate.measure.precision import bakes_tf32, describe_convolution, describe_matmul, without_tf32
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

def play(said):
    exec(said)
    before = read()
    with without_tf32():
        assert not {"tf32", "bf16"} & set(one.fp32_precision for one in SETTINGS), read()
        # Dynamo's guards and users' own code read the older interface in every call.
        assert read()[-3:] == ["highest", False, False], read()
    assert read() == before, (before, read())
    assert describe_settings(CUDA).startswith(f"float32 products {describe_matmul()}, TF32 in")
    return f"{describe_matmul()}; {describe_convolution()}; {bakes_tf32()}"

# torch is imported once, and each process is forked with its settings as they are by default.
for said in sys.argv[1:]:
    if (child := os.fork()) == 0:
        try:
            told = play(said)
        except BaseException:
            told = traceback.format_exc()
        print(json.dumps([said, told]), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
WAYS = {
    "": "highest; True; False",
    "torch.set_float32_matmul_precision('high')": "high; True; False",
    "torch.set_float32_matmul_precision('medium')": "medium; True; False",
    "b.cudnn.allow_tf32 = False": "highest; False; False",
    "b.cuda.matmul.fp32_precision = 'tf32'": "tf32; True; False",
    "b.cudnn.conv.fp32_precision = 'ieee'": "highest; conv ieee, rnn tf32; False",
    "b.cudnn.fp32_precision = 'tf32'": "tf32; True; True",
    "b.fp32_precision = 'tf32'": "tf32; True; True",
    "b.cuda.matmul.fp32_precision = 'tf32'; b.cudnn.conv.fp32_precision = 'ieee'": (
        "tf32; conv ieee, rnn tf32; False"
    ),
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    """The outcome of each setting."""
    done = subprocess.run([sys.executable, "-c", PLAY, *WAYS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.parametrize("setting", WAYS)
def test_tf32_is_off_within_and_as_it_was_after(outcomes: dict[str, str], setting: str) -> None:
    """Drift is measured without TF32, whatever the user has set, and the settings are restored.

    What PyTorch recommends to write since 2.9 failed every warm process.
    """
    assert outcomes[setting] == WAYS[setting]
