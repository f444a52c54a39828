"""The CUDA device on ``torch.cuda``'s own signatures."""

from __future__ import annotations

from dataclasses import replace

from gate.fingerprint import has_same_codegen, has_same_stack
from tests.hosts import CUDA_HOST
from tests.unit.measure.cuda_contract import H100, play_gpu


def test_the_fingerprint_knows_what_code_is_generated_for() -> None:
    """Capability, multiprocessors and memory come from torch: an H100's and a T4's stacks are two."""
    with play_gpu() as (device, _):
        h100 = device.identify()
    assert h100.traits == {"capability": "9.0", "multiprocessors": "132", "memory": "79 GiB"}
    t4_properties = {**H100, "name": "Tesla T4", "major": 7, "minor": 5, "multi_processor_count": 40}
    with play_gpu(t4_properties) as (device, _):
        t4 = device.identify()
    here, there = (replace(CUDA_HOST, device_model=one.model, device_traits=one.traits) for one in (h100, t4))
    assert not has_same_stack(here, there)
    assert not has_same_codegen(here, there)
