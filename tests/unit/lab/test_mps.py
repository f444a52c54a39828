"""A GPU that is shared through CUDA's Multi-Process Service is not measured."""

from pathlib import Path

import pytest

from gate.errors import MachineError
from gate.lab.host.mps import VARIABLE, find_service, refuse_service


def test_a_gpu_behind_the_service_is_refused(tmp_path: Path) -> None:
    """Every CUDA program is then its client: the error names its directory and the fix."""
    (tmp_path / "control").touch()
    with pytest.raises(MachineError, match=f"Multi-Process Service \\({tmp_path}\\) shares") as caught:
        refuse_service("cuda:1", {VARIABLE: str(tmp_path)})
    assert "nvidia-cuda-mps-control" in caught.value.fix
    refuse_service("cpu", {VARIABLE: str(tmp_path)})
    refuse_service("cuda:sm_90", {VARIABLE: str(tmp_path)})  # nothing is run


def test_without_a_daemon_there_is_no_service(tmp_path: Path) -> None:
    """Without a control pipe the variables have no effect."""
    assert find_service({VARIABLE: str(tmp_path)}) == ""
    assert find_service({VARIABLE: "/dev/null"}) == ""
    refuse_service("cuda", {VARIABLE: str(tmp_path / "gone")})
