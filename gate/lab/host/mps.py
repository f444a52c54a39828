"""Is a GPU shared through the CUDA Multi-Process Service (MPS)? Then nothing is measured on it.

Its clients run in one another's time, within limits that the service sets, and NVML counts the server as one
more process: strangers, throttling and whose turn it is could not be told apart. Every program of CUDA that
finds the service's control daemon becomes a client, and runs as ever where it finds none
(nvidia-cuda-mps-control(1)).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gate.devices import find_kind
from gate.errors import MachineError
from gate.records import Code, Fact, name_words
from gate.report.words.findings import advise_finding, describe_finding

VARIABLE = "CUDA_MPS_PIPE_DIRECTORY"
_USUAL = "/tmp/nvidia-mps"  # noqa: S108 - the service's, only looked at
_CONTROL = "control"  # what a client connects to; gone once the daemon has quit


def find_service(environ: Mapping[str, str]) -> str:
    """Find where workers would become clients of the service; empty where they would not."""
    place = Path(environ.get(VARIABLE) or _USUAL)
    try:
        return str(place) if (place / _CONTROL).exists() else ""
    except OSError:  # whoever may not look may not connect
        return ""


def refuse_service(device: str, environ: Mapping[str, str]) -> None:
    """Refuse to measure on a GPU through the service.

    Raises:
        MachineError: Workers would become its clients.
    """
    if find_kind(device).is_gpu and (place := find_service(environ)):
        told = tell_service(place)
        raise MachineError(describe_finding(told), advise_finding(told))


def tell_service(place: str) -> Fact:
    """Tell that the service is in use."""
    return Fact(code=Code.SERVICE_IN_USE, names=name_words(place=place, variable=VARIABLE))
