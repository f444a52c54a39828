"""Whether CUDA's Multi-Process Service (MPS) shares the GPU: nothing is measured through it.

Every CUDA program that finds the service's control daemon becomes a client (nvidia-cuda-mps-control(1)).
Clients run in one another's time, and NVML counts the server as one more process.
"""

from collections.abc import Mapping
from pathlib import Path

from gate.devices import get_kind
from gate.errors import MachineError

VARIABLE = "CUDA_MPS_PIPE_DIRECTORY"
_USUAL = "/tmp/nvidia-mps"  # noqa: S108 - the service's, only looked at
_CONTROL = "control"  # what a client connects to; gone once the daemon has quit


def find_service(environ: Mapping[str, str]) -> str:
    """Empty where workers would not become clients of the service."""
    directory = Path(environ.get(VARIABLE) or _USUAL)
    try:
        return str(directory) if (directory / _CONTROL).exists() else ""
    except OSError:  # whoever may not look may not connect
        return ""


def refuse_service(device: str, environ: Mapping[str, str]) -> None:
    """Check that no service shares the GPU.

    Raises:
        MachineError: Workers would become its clients.
    """
    if get_kind(device).is_gpu and (directory := find_service(environ)):
        raise MachineError(*describe_service(directory))


def describe_service(directory: str) -> tuple[str, str]:
    what = f"CUDA's Multi-Process Service ({directory}) shares the GPU: its clients cannot be distinguished"
    stop = "Stop it (`echo quit | nvidia-cuda-mps-control`), or let the gate's processes not find it"
    return what, f"{stop}: set {VARIABLE} to an empty directory."
