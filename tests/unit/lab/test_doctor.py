"""The doctor's checks, each in each of its levels."""

from dataclasses import replace

import pytest

from gate.errors import MachineError
from gate.lab.doctor import examine_machine, is_fit
from gate.lab.host.gpu import GpuState
from gate.lab.probe import MachineState
from gate.records.events import Check, CheckLevel

GIB = 2**30
WELL = MachineState(
    device="cpu",
    threads=2,
    interpreter="/usr/bin/python3",
    python="3.11.7",
    torch="2.13.0+cpu",
    compiler="g++ 12.2.0",
    cores=4,
    load=0.5,
    governor="performance",
    memory_bytes=16 * GIB,
    disk_bytes=20 * GIB,
    git="git version 2.39.5",
    commit="0123456789abcdef",
)
GPU = GpuState(
    index=0,
    uuid="GPU-aaaa",
    name="NVIDIA H200",
    driver="580.65.06",
    clock_mhz=345.0,
    max_clock_mhz=1980.0,
    temperature_c=31.0,
    persistent=True,
    memory_total_mib=100000.0,
)
LINKED = MachineError("the lock file is a link", "Have it removed.")
WELL_GPU = replace(WELL, device="cuda", torch="2.13.0+cu130", torch_devices=1, gpu=GPU)


def find_check(state: MachineState, name: str) -> Check:
    """Examine, and return one check."""
    return next(check for check in examine_machine(state) if check.name == name)


@pytest.mark.parametrize("state", [WELL, WELL_GPU])
def test_fit_machine(state: MachineState) -> None:
    """Every check is ok, has a finding and needs no fix."""
    checks = examine_machine(state)
    assert {(CheckLevel.OK, "")} == {(check.level, check.fix) for check in checks}
    assert all(check.finding for check in checks)
    assert len(checks) == len({check.name for check in checks})
    assert is_fit(checks)


@pytest.mark.parametrize(
    ("name", "level", "change"),
    [
        ("python", CheckLevel.FAIL, {"python": ""}),
        (
            "torch",
            CheckLevel.FAIL,
            {"torch": "", "torch_problem": "ModuleNotFoundError: No module named 'torch'"},
        ),
        ("torch", CheckLevel.WARN, {"torch": "2.9.1"}),
        ("compiler", CheckLevel.FAIL, {"compiler": ""}),
        ("compiler", CheckLevel.FAIL, {"compiler_problem": "g++ cannot compile: vector: No such file"}),
        ("compiler", CheckLevel.FAIL, {"headers_lacking": "/usr/include/python3.11"}),
        ("compiler", CheckLevel.FAIL, {"torch_path": "/my envs/torch"}),
        ("load", CheckLevel.WARN, {"load": 1.0}),
        ("load", CheckLevel.FAIL, {"load": 4.0}),
        ("threads", CheckLevel.FAIL, {"threads": 5}),
        ("clocks", CheckLevel.WARN, {"governor": "powersave"}),
        ("steal", CheckLevel.WARN, {"steal": 0.05}),
        ("memory", CheckLevel.WARN, {"memory_bytes": 2 * GIB}),
        ("memory", CheckLevel.FAIL, {"memory_bytes": GIB // 2}),
        ("disk", CheckLevel.WARN, {"disk_bytes": GIB}),
        ("disk", CheckLevel.FAIL, {"disk_bytes": GIB // 4}),
        ("git", CheckLevel.WARN, {"git": "", "commit": ""}),
        ("git", CheckLevel.WARN, {"commit": ""}),
        ("git", CheckLevel.WARN, {"commit": "", "git_problem": LINKED}),
        ("lock", CheckLevel.WARN, {"holder": "process 4711 of ada"}),
        ("lock", CheckLevel.FAIL, {"lock_problem": LINKED}),
        ("variables", CheckLevel.WARN, {"preloaded": "/usr/lib/libtcmalloc.so"}),
    ],
)
def test_findings(name: str, level: CheckLevel, change: dict[str, object]) -> None:
    """Each problem changes its own check only, to the right level, with a fix."""
    state = replace(WELL, **change)  # type: ignore[arg-type] # the cases above hold the fields' types
    check = find_check(state, name)
    assert level == check.level
    assert check.fix
    others = [other for other in examine_machine(state) if other.name != name]
    assert {CheckLevel.OK} == {other.level for other in others}
    assert (level != CheckLevel.FAIL) == is_fit(examine_machine(state))


@pytest.mark.parametrize(
    ("name", "level", "change"),
    [
        ("throttling", CheckLevel.FAIL, {"throttled": ("hardware slowdown",)}),
        ("sharing", CheckLevel.FAIL, {"processes": 1}),
        ("sharing", CheckLevel.WARN, {"memory_used_mib": 6000.0}),
        ("mode", CheckLevel.WARN, {"mig": True}),
        ("mode", CheckLevel.WARN, {"persistent": False}),
        ("mode", CheckLevel.WARN, {"exclusive": True}),
        ("guards", CheckLevel.WARN, {"blind": ("throttling",)}),
    ],
)
def test_findings_of_a_gpu(name: str, level: CheckLevel, change: dict[str, object]) -> None:
    """Each problem of a GPU has its check, with a fix."""
    gpu = replace(GPU, **change)  # type: ignore[arg-type] # the cases above hold the fields' types
    check = find_check(replace(WELL_GPU, gpu=gpu), name)
    assert level == check.level
    assert check.fix


def test_unknown_gpu() -> None:
    """A device that nvidia-smi does not list, or torch does not see, is a failure."""
    assert find_check(replace(WELL_GPU, gpu=None), "gpu").level == CheckLevel.FAIL
    assert find_check(replace(WELL_GPU, device="cuda:1"), "device").level == CheckLevel.FAIL


def test_a_gpu_that_nobody_can_watch_is_not_fit() -> None:
    """Without NVML no trial would see throttling or strangers: the fix names the package."""
    state = replace(WELL_GPU, nvml_problem="ModuleNotFoundError: No module named 'pynvml'")
    check = find_check(state, "guards")
    assert (check.level, is_fit(examine_machine(state))) == (CheckLevel.FAIL, False)
    assert "nvidia-ml-py" in check.fix
    assert is_fit(examine_machine(WELL_GPU))


def test_a_gpu_behind_the_multi_process_service_is_not_fit() -> None:
    """Its clients cannot be distinguished: the check names its directory, and how to stop it."""
    check = find_check(replace(WELL_GPU, mps="/tmp/nvidia-mps"), "mps")  # noqa: S108 - the service's
    assert (check.level, "/tmp/nvidia-mps" in check.finding) == (CheckLevel.FAIL, True)  # noqa: S108
    assert find_check(WELL_GPU, "mps").level == CheckLevel.OK


def test_cases_that_the_gpu_cannot_run_are_reported() -> None:
    """Their check would be INCOMPLETE."""
    state = replace(WELL_GPU, unavailable="UNAVAILABLE: bert/x: this GPU compiles no bfloat16")
    check = find_check(state, "cases")
    assert (check.level, check.finding) == (CheckLevel.FAIL, state.unavailable)
    assert find_check(WELL_GPU, "cases").level == CheckLevel.OK


def test_words() -> None:
    """Findings name what was found, fixes what to do."""
    load = find_check(replace(WELL, load=1.5), "load")
    fix = "Stop other work, or wait for its end; times measured now are too noisy to judge."
    assert load == Check(
        name="load",
        level=CheckLevel.WARN,
        finding="1.50 on 4 cores",
        fix=fix,
        numbers={"load": 1.5, "cores": 4},
    )
    busy = find_check(replace(WELL, load=1.5, busiest=("chromium (pid 123, 95 %)",)), "load")
    assert busy.fix.startswith("Stop chromium (pid 123, 95 %), or wait")
    lock = find_check(replace(WELL, lock_problem=LINKED), "lock")
    assert (lock.finding, lock.fix) == (LINKED.what, LINKED.fix)
    # Triton's compiler takes no path of torch's.
    gpu = replace(WELL, device="cuda", torch_path="/my envs/torch")
    assert find_check(gpu, "compiler").level is CheckLevel.OK
    headers = find_check(replace(WELL, headers_lacking="/usr/include/python3.11"), "compiler")
    assert (headers.finding, headers.fix) == (
        "no Python.h in /usr/include/python3.11",
        "Install the headers of Python (python3-dev).",
    )
    dirty = find_check(replace(WELL, dirty=True), "git")
    assert dirty.finding == "git version 2.39.5, at 0123456789, uncommitted changes"
