"""The GPUs of this host, as nvidia-smi reports them."""

import csv
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from gate.devices import CPU, NO_TRITON, TARGET, get_kind, is_target, name_clock_reasons
from gate.errors import MachineError
from gate.programs import ask_program, read_text
from gate.project.capability import Card
from gate.records.run import EXPECTED_THROTTLING

_CSV = "--format=csv,noheader,nounits"
_MIG = "MIG-"
_LIMIT_S = 20.0  # without persistence mode nvidia-smi loads the driver first: seconds on large hosts
FIELDS = (
    "index", "uuid", "name", "driver_version", "clocks.sm", "clocks.max.sm",
    "temperature.gpu", "persistence_mode", "mig.mode.current", "compute_mode",
    "memory.used", "memory.total", "pci.bus_id",
    "clocks_event_reasons.active", "compute_cap",  # since driver 535
)  # fmt: skip
_INSTANCE = re.compile(r"^\s+MIG (?P<profile>\S+)\s.*\(UUID: (?P<uuid>MIG-[^)]+)\)")
_SLICE = re.compile(r"\.(?P<gib>\d+)gb")  # of a profile: "1g.18gb"
_BOARD = re.compile(r"^GPU (?P<index>\d+): .*\(UUID: (?P<uuid>GPU-[^)]+)\)")
_EXCLUSIVE = "Exclusive_Process"
_BUILT_FOR = re.compile(r"^(?:cuda|hip)\b[^=]*= *(\S+)$", re.MULTILINE)  # in torch/version.py
# Of Linux, of Windows below WSL, of Jetson, of ROCm. Without any of them no torch sees a GPU.
_DRIVERS = tuple(map(Path, ("/dev/nvidiactl", "/dev/dxg", "/dev/nvmap", "/dev/kfd")))


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuState:
    """Numbers that the driver does not give are 0, words are empty."""

    index: int
    uuid: str
    name: str = ""
    driver: str = ""
    clock_mhz: float = 0.0
    max_clock_mhz: float = 0.0
    throttled: tuple[str, ...] = ()
    temperature_c: float = 0.0
    persistent: bool = False
    mig: bool = False  # switched on; by its UUID the device itself may be an instance
    exclusive: bool = False  # one process at a time may use it
    blind: tuple[str, ...] = ()  # what the driver does not report
    capability: str = ""  # "9.0"
    memory_used_mib: float = 0.0
    memory_total_mib: float = 0.0
    processes: int = 0
    bus: str = ""  # its address: "00000000:17:00.0"

    @property
    def is_whole_lane(self) -> bool:
        return not self.mig or self.uuid.startswith(_MIG)

    @property
    def card(self) -> Card:
        return Card(capability=self.capability, memory_gib=self.memory_total_mib / 1024)


def load_gpus() -> tuple[GpuState, ...]:
    """Empty where nvidia-smi is missing or fails. MIG instances come after the boards."""
    table = _run_nvidia_smi(f"--query-gpu={','.join(FIELDS)}", _CSV)
    if not table:
        return ()
    gpus = parse_gpus(table, _run_nvidia_smi("--query-compute-apps=gpu_uuid,pid", _CSV))
    listed = _run_nvidia_smi("-L") if any(gpu.mig for gpu in gpus) else ""
    return (*gpus, *parse_instances(listed, gpus))


def parse_gpus(table: str, processes: str) -> tuple[GpuState, ...]:
    """Lines of the CSV that do not fit are left out."""
    busy = Counter(row[0] for row in _parse_rows(processes, 2))
    return tuple(
        _parse_gpu(dict(zip(FIELDS, row, strict=True)), busy[row[1]])
        for row in _parse_rows(table, len(FIELDS))
        if row[0].isdecimal()
    )


def parse_instances(listed: str, gpus: Sequence[GpuState]) -> tuple[GpuState, ...]:
    boards, instances, board = {gpu.uuid: gpu for gpu in gpus}, [], None
    for line in listed.splitlines():
        if match := _BOARD.match(line):
            board = boards.get(match["uuid"])
        elif board and (match := _INSTANCE.match(line)):
            instances.append(_cut_board(board, match["uuid"], match["profile"]))
    return tuple(instances)


def _cut_board(board: GpuState, uuid: str, profile: str) -> GpuState:
    size = _SLICE.search(profile)
    total = 1024.0 * int(size["gib"]) if size else 0.0
    name = f"{board.name} MIG {profile}"
    return replace(board, uuid=uuid, name=name, memory_used_mib=0.0, memory_total_mib=total)


def find_gpu(gpus: Sequence[GpuState], device: str, environ: Mapping[str, str]) -> GpuState | None:
    """Find the GPU that a worker will call ``device`` (``cuda``, ``cuda:1``).

    Workers order devices by PCI bus, as nvidia-smi does, and inherit ``CUDA_VISIBLE_DEVICES``.
    """
    if not gpus:  # none was looked for where code is compiled for a target: its name holds no number
        return None
    ordinal = int(device.partition(":")[2] or 0)
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        names = [str(gpu.index) for gpu in gpus if not gpu.uuid.startswith(_MIG)]
    else:
        names = [name.strip() for name in visible.split(",")]
    if ordinal >= len(names) or not names[ordinal]:
        return None
    name = names[ordinal]
    for gpu in gpus:
        if name == str(gpu.index) or (not name.isdecimal() and gpu.uuid.startswith(name)):
            return gpu
    return None


def look_up_gpu(device: str, environ: Mapping[str, str]) -> GpuState | None:
    return find_gpu(load_gpus(), device, environ) if get_kind(device).is_gpu else None


def read_memory_share(gpu: GpuState | None) -> float:
    """Share of the GPU's memory that is in use now.

    0 where it is not known: of a MIG instance, and of a card that shares the host's memory.
    """
    if gpu is None or gpu.uuid.startswith(_MIG) or not gpu.memory_total_mib:
        return 0.0
    used = _run_nvidia_smi("--query-gpu=memory.used", _CSV, f"--id={gpu.uuid}")
    return _parse_number(used.strip()) / gpu.memory_total_mib


def name_lock(device: str, gpu: GpuState | None) -> str:
    if get_kind(device) is TARGET:
        return CPU.name  # which compiling for it keeps busy
    return gpu.uuid.replace("/", "-") if gpu else device.replace(":", "-")


def show_alone(gpu: GpuState | None, device: str) -> tuple[str, dict[str, str]]:
    if gpu is None or not gpu.is_whole_lane:
        return device, {}
    # Seen alone, every GPU is number 0: its number would stand in the generated code.
    return get_kind(device).name, {"CUDA_VISIBLE_DEVICES": gpu.uuid}


def _run_nvidia_smi(*query: str) -> str:
    return ask_program(["nvidia-smi", *query], limit_s=_LIMIT_S).output


def _parse_rows(table: str, columns: int) -> list[list[str]]:
    rows = csv.reader(table.splitlines(), skipinitialspace=True)
    return [[field.strip() for field in row] for row in rows if len(row) == columns]


def _parse_gpu(fields: Mapping[str, str], processes: int) -> GpuState:
    mask, capability = fields["clocks_event_reasons.active"], fields["compute_cap"]
    return GpuState(
        index=int(fields["index"]),
        uuid=fields["uuid"],
        name=fields["name"],
        driver=fields["driver_version"],
        clock_mhz=_parse_number(fields["clocks.sm"]),
        max_clock_mhz=_parse_number(fields["clocks.max.sm"]),
        throttled=_parse_reasons(mask),
        blind=() if mask.startswith("0x") else ("throttling",),
        temperature_c=_parse_number(fields["temperature.gpu"]),
        persistent=fields["persistence_mode"] == "Enabled",
        mig=fields["mig.mode.current"] == "Enabled",
        capability=capability if _parse_number(capability) else "",
        exclusive=fields["compute_mode"] == _EXCLUSIVE,
        memory_used_mib=_parse_number(fields["memory.used"]),
        memory_total_mib=_parse_number(fields["memory.total"]),
        processes=processes,
        bus=fields["pci.bus_id"],
    )


def _parse_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # "[N/A]" and "[Not Supported]"
        return 0.0


def _parse_reasons(mask: str) -> tuple[str, ...]:
    """Only what should not lower clocks: under load a power cap is normal."""
    try:
        named = name_clock_reasons(int(mask, 16))
    except ValueError:  # "[N/A]"
        return ()
    return tuple(reason for reason in named if reason not in EXPECTED_THROTTLING)


def refuse_stack(device: str) -> None:
    """Check that torch, or triton for a target, can use the device, without importing it.

    Raises:
        MachineError: This interpreter's torch is a CPU build, or triton is missing.
    """
    if is_target(device) and find_spec("triton") is None:
        raise MachineError(*NO_TRITON)
    spec = find_spec("torch") if get_kind(device).is_gpu else None
    text = read_text(Path(spec.origin).with_name("version.py")) if spec and spec.origin else ""
    if set(_BUILT_FOR.findall(text)) == {"None"}:
        what = f"{device} cannot be used: the torch of {sys.executable} is a CPU build"
        raise MachineError(what, "Install a torch that is built for this GPU, or choose --device cpu.")


def refuse_absent(device: str, gpu: GpuState | None) -> None:
    """Check for a GPU's driver before torch is imported.

    Raises:
        MachineError: nvidia-smi lists no such GPU, and there is no driver.
    """
    if get_kind(device).is_gpu and gpu is None and not any(driver.exists() for driver in _DRIVERS):
        raise MachineError(*describe_unlisted(device))


def describe_unlisted(device: str) -> tuple[str, str]:
    fix = "Check the driver (535 or newer): `nvidia-smi` must list the device; see CUDA_VISIBLE_DEVICES too."
    return f"nvidia-smi is missing, or does not list {device}", fix
