"""Which device a name stands for."""

import torch

from gate.devices import CPU, get_kind, is_target
from gate.errors import MachineError
from gate.measure.device.cpu import CpuDevice
from gate.measure.device.cuda import CudaDevice
from gate.measure.device.device import Device
from gate.measure.device.target_device import TargetDevice


def open_device(name: str) -> Device:
    """Open ``cpu``, ``cuda``, ``cuda:N``, or a target such as ``cuda:sm_90``: for it code is only compiled.

    Raises:
        MachineError: There is no such device, or this machine cannot compile for the target.
    """
    if get_kind(name) is CPU:
        return CpuDevice()
    if is_target(name):
        return TargetDevice(name)
    check_device(name)
    return CudaDevice(torch.device(name))


def check_device(name: str) -> None:
    """Check that a CUDA device is there, without taking any of its memory.

    Raises:
        MachineError: It is not.
    """
    count = torch.cuda.device_count()
    if (torch.device(name).index or 0) >= count:
        fix = "Choose one that `nvidia-smi` lists, install a torch built for CUDA, or use cpu."
        raise MachineError(
            f"no such device: {name} (torch {torch.__version__} sees {count} CUDA devices)", fix
        )
