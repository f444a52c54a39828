"""Opens the device that a case names, of whichever kind."""

from __future__ import annotations

import torch

from gate.devices import CPU, find_kind
from gate.errors import MachineError
from gate.measure.device.device import CpuDevice, CudaDevice, Device
from gate.records.targets import is_target


def open_device(name: str) -> Device:
    """Open ``cpu``, ``cuda`` or ``cuda:N``, or a target, ``cuda:sm_90``, that code is only compiled for.

    Raises:
        MachineError: There is no such device, or this machine cannot compile for the target.
    """
    if find_kind(name) is CPU:
        return CpuDevice()
    if is_target(name):
        from gate.measure.device.pretended import TargetDevice  # noqa: PLC0415 - it changes what torch answers

        return TargetDevice(name)
    check_device(name)
    return CudaDevice(torch.device(name))


def check_device(name: str) -> None:
    """Check that a CUDA device is there, without taking any of its memory.

    Raises:
        MachineError: It is not.
    """
    if find_kind(name) is CPU:
        return
    found = torch.cuda.device_count()
    if (torch.device(name).index or 0) >= found:
        fix = "Choose one that `nvidia-smi` lists, install a torch built for CUDA, or use cpu."
        raise MachineError(
            f"no such device: {name} (torch {torch.__version__} sees {found} CUDA devices)", fix
        )
