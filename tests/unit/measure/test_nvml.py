"""NVML's reports: the real nvidia-ml-py on a library that plays machines, each in its own process."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from gate.devices import name_clock_reasons
from gate.measure.device.nvml import DeviceState, NvmlDevice, list_throttling, list_unwatched
from tests.words import describe_measuring

STUB = Path(__file__).parent / "stub_nvml.c"
UUID = "12345678-aaaa-bbbb-cccc-000000000000"  # as torch reports it
LOOK = """
import json, sys
from dataclasses import asdict
from gate.measure.device.nvml import NvmlDevice
device = NvmlDevice(sys.argv[1])
states = [asdict(device.read_state()) for _ in range(2)]
print(json.dumps({
    "uuid": device.uuid, "driver": device.read_driver(), "clocks": device.read_clock_policy(),
    "traits": device.read_traits(), "states": states, "energy": device.read_energy_j(),
}))
"""
Look = Callable[[str], dict[str, Any]]
HEALTHY_TRAITS = {
    "ecc": "on",
    "mig": "off",
    "persistence": "on",
    "compute_mode": "default",
    "max_sm_clock": "1980 MHz",
    "max_memory_clock": "2619 MHz",
    "numa_node": "1",
}


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """Look twice at a machine of the stub, by its name."""

    def look_at(machine: str) -> dict[str, Any]:
        library = tmp_path / "libnvidia-ml.so.1"
        flags = ("-shared", "-fPIC", "-w", f"-DMACHINE={machine}", "-x", "c")
        subprocess.run(["g++", *flags, str(STUB), "-o", str(library)], check=True)
        done = subprocess.run(
            [sys.executable, "-c", LOOK, UUID],
            env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
            stdout=subprocess.PIPE,
            check=True,
        )
        report = json.loads(done.stdout)
        assert isinstance(report, dict)
        return report | {"states": [read_back(state) for state in report["states"]]}

    return look_at


def read_back(state: dict[str, Any]) -> DeviceState:
    """Read a state from JSON, which has no tuples."""
    fields = {**state, "throttled": tuple(state["throttled"]), "unseen": tuple(state["unseen"])}
    assert fields.keys() == asdict(DeviceState()).keys()
    return DeviceState(**fields)


def test_reasons_are_named() -> None:
    """Bits 0x04 and 0x40 are the power cap and hardware thermal slowdown; idle (0x01) is no reason."""
    assert name_clock_reasons(0x45) == ("software power cap", "hardware thermal slowdown")


def test_a_healthy_gpu(look: Look) -> None:
    """All is known, nothing is wrong: one process, no reason, and the traits that change its speed."""
    report = look("HEALTHY")
    before, after = report["states"]
    assert (report["uuid"], report["driver"], report["clocks"]) == (f"GPU-{UUID}", "580.159.04", "700 W")
    assert report["traits"] == HEALTHY_TRAITS
    assert after.processes == 1
    assert (list_throttling(before, after), list_unwatched(after)) == ((), ())


def test_throttling_between_two_looks_is_seen(look: Look) -> None:
    """The device idles at both looks; its counter says that it was too hot for half a second between."""
    before, after = look("THROTTLED")["states"]
    assert (before.throttled, after.throttled) == ((), ())
    assert list_throttling(before, after) == ("thermal slowdown",)


def test_a_gpu_instance_is_watched(look: Look) -> None:
    """An instance is found by the UUID alone; clocks, limits and throttling are asked of its board."""
    report = look("MIG")
    assert report["uuid"] == f"MIG-{UUID}"
    assert report["traits"] == {**HEALTHY_TRAITS, "mig": "on"}
    assert report["clocks"] == "700 W"
    assert list_unwatched(report["states"][0]) == ()


def test_strangers_are_counted(look: Look) -> None:
    """Three processes compute on the device, of which one is this one."""
    assert look("STRANGERS")["states"][0].processes == 3


@pytest.mark.parametrize(
    ("machine", "joules"),
    [("HEALTHY", 1234.5), ("MIG", None), ("HIDDEN", None), ("GONE", None)],
)
def test_energy_is_the_boards(look: Look, machine: str, joules: float | None) -> None:
    """1,234,500 mJ are 1234.5 J; an instance has no energy of its own, and not all boards count."""
    assert look(machine)["energy"] == joules


def test_a_driver_that_is_gone_is_reported(look: Look) -> None:
    """The warning has NVML's message; nothing else fails."""
    report = look("GONE")
    assert (report["driver"], report["clocks"], report["traits"]) == ("", "", {})
    assert tuple(map(describe_measuring, list_unwatched(report["states"][0]))) == (
        (
            "the GPU cannot be monitored for throttling, other processes: NVML cannot be used: Driver Not"
            " Loaded"
        ),
    )


def test_what_a_driver_hides_is_reported(look: Look) -> None:
    """A list of processes without this one lacks others too; reasons may need a right."""
    (fact,) = list_unwatched(look("HIDDEN")["states"][0])
    assert describe_measuring(fact).endswith("throttling, other processes: the driver does not report it")


def test_an_unknown_device_is_reported(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    """The warning lists all that NVML cannot report of such a UUID."""
    monkeypatch.setattr(sys.modules[__name__], "UUID", "99999999-aaaa-bbbb-cccc-000000000000")
    (fact,) = list_unwatched(look("HEALTHY")["states"][0])
    assert describe_measuring(fact).endswith(
        "NVML does not know the device GPU-99999999-aaaa-bbbb-cccc-000000000000"
    )


def test_without_nvml_all_is_unknown_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """nvidia-ml-py is optional, but its absence is a warning."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    device = NvmlDevice("abc")
    assert (device.read_driver(), device.read_clock_policy(), device.read_traits()) == ("", "", {})
    (fact,) = list_unwatched(device.read_state())
    assert "pip install nvidia-ml-py" in describe_measuring(fact)


def test_a_short_slowdown_is_no_throttling() -> None:
    """5 ms are less than a timed block; a counter that only one look has shows nothing."""
    before = DeviceState(slowed_s={"thermal slowdown": 1.0})
    after = DeviceState(slowed_s={"thermal slowdown": 1.005, "software power cap": 9.0})
    assert list_throttling(before, after) == ()
