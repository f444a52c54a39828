"""Workers stay on the cores that are near the GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gate.lab.host import cores
from gate.lab.host.cores import choose_cores, divide_cores, parse_cores, read_near_cores, stay_on, write_cores
from gate.lab.host.gpu import GpuState

BUS = "00000000:17:00.0"
ASK = "import os; print(sorted(os.sched_getaffinity(0)))"


@pytest.mark.parametrize(
    ("text", "cores"), [("0-2,8\n", {0, 1, 2, 8}), ("3\n", {3}), ("\n", set()), ("0-1,4-5", {0, 1, 4, 5})]
)
def test_cores_as_the_kernel_lists_them(text: str, cores: set[int]) -> None:
    """Ranges with both ends, and single cores."""
    assert parse_cores(text) == cores
    assert parse_cores(write_cores(cores)) == cores


def test_cores_are_written_as_spans() -> None:
    """A single core is no span."""
    assert write_cores([3, 0, 2, 8, 1]) == "0-3,8"
    assert not write_cores([])


def attach(devices: Path, text: str) -> Path:
    """Return a directory of devices, one of which is attached to these cores."""
    (devices / "0000:17:00.0").mkdir(parents=True)
    (devices / "0000:17:00.0" / "local_cpulist").write_text(text)
    return devices


def test_the_address_is_the_one_of_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvidia-smi writes eight digits of the domain, the kernel four and small letters."""
    monkeypatch.setattr(cores, "_DEVICES", attach(tmp_path, "0-3\n"))
    assert read_near_cores(BUS) == {0, 1, 2, 3}
    assert read_near_cores("00000000:C1:00.0") == frozenset()
    assert read_near_cores("") == read_near_cores("[N/A]") == frozenset()


def test_what_is_started_stays_on_its_cores() -> None:
    """A process started within has one core only; afterwards all are back."""
    before = os.sched_getaffinity(0)
    with stay_on({min(before)}, threads=1):
        text = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True).stdout
    assert text.strip() == f"[{min(before)}]"
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize(("wanted", "threads"), [((), 1), ((0,), 2)])
def test_nobody_is_held_to_too_few(wanted: tuple[int, ...], threads: int) -> None:
    """All cores stay allowed if the system names none, or fewer than a worker has threads."""
    before = os.sched_getaffinity(0)
    with stay_on(wanted, threads=threads):
        assert os.sched_getaffinity(0) == before


def test_cores_are_divided_without_parting_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cores 0 to 3 have their second threads at 4 to 7; a third part gets one core, and one is left over."""
    monkeypatch.setattr(cores, "CPUS", tmp_path)
    for core in range(8):
        (tmp_path / f"cpu{core}/topology").mkdir(parents=True)
        siblings = tmp_path / f"cpu{core}/topology/thread_siblings_list"
        siblings.write_text(f"{core % 4},{core % 4 + 4}\n")
    assert divide_cores(range(8), 2) == [{0, 1, 4, 5}, {2, 3, 6, 7}]
    assert divide_cores(range(8), 3) == [{0, 4}, {1, 5}, {2, 6}]
    assert divide_cores([9, 8], 2) == [{8}, {9}]


def test_gpus_of_one_node_have_cores_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two near cores 0-5, one of them cut into two instances, and one near others."""
    near = {"1": frozenset(range(6)), "2": frozenset(range(6)), "3": frozenset({8, 9})}
    monkeypatch.setattr(cores, "read_near_cores", lambda bus: near.get(bus, frozenset()))
    monkeypatch.setattr(cores, "list_cores", lambda: range(10))
    monkeypatch.setattr(cores, "CPUS", Path("/no/such/place"))
    gpus = [
        GpuState(index=0, uuid="GPU-a", bus="1"),
        GpuState(index=1, uuid="GPU-b", bus="2", mig=True),
        GpuState(index=1, uuid="MIG-1", bus="2", mig=True),
        GpuState(index=1, uuid="MIG-2", bus="2", mig=True),
        GpuState(index=2, uuid="GPU-c", bus="3"),
    ]
    chosen = {gpu.uuid: choose_cores(gpu, gpus, 2) for gpu in gpus}
    assert chosen == {
        "GPU-a": {0, 1},
        "GPU-b": {0, 1, 2, 3, 4, 5},
        "MIG-1": {2, 3},
        "MIG-2": {4, 5},
        "GPU-c": {8, 9},
    }
    assert choose_cores(gpus[0], gpus, 3) == near["1"]  # no share has as many
    assert choose_cores(GpuState(index=0, uuid="GPU-a", bus=""), gpus, 1) == frozenset()


def test_cores_that_somebody_has_divided_are_not_divided_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler has given this job two of the six near cores."""
    monkeypatch.setattr(cores, "read_near_cores", lambda _: frozenset(range(6)))
    monkeypatch.setattr(cores, "list_cores", lambda: [4, 5, 12])
    gpus = [GpuState(index=number, uuid=f"GPU-{number}", bus="1") for number in range(2)]
    assert choose_cores(gpus[0], gpus, 1) == {4, 5}
