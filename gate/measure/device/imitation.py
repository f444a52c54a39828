"""Lets a CPU build of torch hold fake tensors of a GPU, as if that were there."""

import ctypes
import hashlib
import importlib.util
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gate.devices import BOARDS, Board, name_targets, read_architecture
from gate.errors import MachineError
from gate.installation import name_page
from gate.programs import ask_program
from gate.sizes import GIB, KIB, MIB

# Releases of torch whose compiler the imitated device was tested with: it stands in for names that are no
# interface of torch's, and another release may ask for others without any error.
TESTED = ("2.13",)
_SOURCE = Path(__file__).with_name("hooks.cpp")
_COMPILE_LIMIT_S = 300
_MAX_MESSAGE = 300  # characters of a compiler's message
_FOR_OTHERS = stat.S_IRWXG | stat.S_IRWXO
WARP = 32
_REGISTERS = 65536  # of a multiprocessor, and threads of a block at most, of every GPU since 2012
_BLOCK_THREADS = 1024
_CUDA_VERSION = "13.0"  # asked for by a few heuristics of Inductor; any that knows all targets


def imitate_gpu(target: str) -> None:
    """Let torch, Inductor and Triton see a board of the target's capability in this process.

    Raises:
        MachineError: There is no such target or no torch, or torch is one for GPUs or of a release that
            targets were not tested with, or there is no C++ compiler.
    """
    architecture = read_architecture(target)
    if architecture not in BOARDS:
        raise MachineError(f"no such target: {target}", f"Choose one of {name_targets()}.")
    if "torch" in sys.modules:
        raise RuntimeError("torch asks for a device when it is imported: imitate one before")
    directory = _get_torch_directory()
    if (directory / "lib" / "libtorch_cuda.so").exists():
        message = "a target is compiled for by a CPU build of torch, and this one is built for CUDA"
        raise MachineError(message, "Measure on the GPU (--device cuda), or install a CPU build beside it.")
    _check_release()
    ctypes.CDLL(str(directory / "lib" / "libtorch_cpu.so"))
    ctypes.CDLL(str(_build_hooks(directory)))
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # binaries must not hold where sources lie on a machine
    _answer_as(BOARDS[architecture], divmod(architecture, 10))


def _get_torch_directory() -> Path:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise MachineError("No module named 'torch'", "Install a CPU build of torch.")
    return Path(spec.origin).parent


def _check_release() -> None:
    release = ".".join(metadata.version("torch").split(".")[:2])
    if release not in TESTED:
        tested = " and ".join(TESTED)
        message = f"targets were tested with torch {tested}, and this torch is {release}"
        fix = f"Install a CPU build of torch {tested}, or measure on the GPU itself (--device cuda)."
        raise MachineError(message, fix)


def _build_hooks(torch: Path) -> Path:
    of_torch = f"{metadata.version('torch')} {torch}".encode()
    digest = hashlib.sha256(_SOURCE.read_bytes() + of_torch).hexdigest()[:16]
    library = _make_private(Path(tempfile.gettempdir()) / f"gate-hooks-{os.getuid()}") / f"{digest}.so"
    if library.exists():
        return library
    partial = library.with_suffix(f".{os.getpid()}")
    lib = torch / "lib"
    command = [
        *os.environ.get("CXX", "g++").split(),
        "-std=c++20", "-shared", "-fPIC", "-O0", f"-I{torch / 'include'}", str(_SOURCE),
        f"-L{lib}", "-ltorch_cpu", "-lc10", "-o", str(partial),
    ]  # fmt: skip
    done = ask_program(command, limit_s=_COMPILE_LIMIT_S)
    if done.problem:
        raise MachineError(f"No working C++ compiler: {done.problem}", "Install g++, or set CXX.")
    if done.status:
        errors = [line for line in done.err.splitlines() if "error" in line]
        message = (errors or [done.err.strip()])[0][:_MAX_MESSAGE]
        fix = f"Targets were not tried with this torch: see {name_page('targets')}."
        raise MachineError(f"the C++ compiler cannot compile for this torch: {message}", fix)
    partial.rename(library)
    return library


def _make_private(directory: Path) -> Path:
    """Make a directory into which nobody else can put a library that would be loaded."""
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & _FOR_OTHERS:
        raise MachineError(
            f"other users can write to {directory}, from where a library is loaded",
            "Remove it, or set TMPDIR to a directory of your own.",
        )
    return directory


def _answer_as(board: Board, capability: tuple[int, int]) -> None:
    import torch  # noqa: PLC0415 - the hooks come before

    properties = SimpleNamespace(
        name=board.name,
        major=capability[0],
        minor=capability[1],
        multi_processor_count=board.multiprocessors,
        total_memory=board.memory_gib * GIB,
        L2_cache_size=board.l2_cache_mib * MIB,
        regs_per_multiprocessor=_REGISTERS,
        max_threads_per_multi_processor=board.threads,
        max_threads_per_block=_BLOCK_THREADS,
        warp_size=WARP,
        shared_memory_per_block=48 * KIB,
        shared_memory_per_block_optin=board.block_shared_kib * KIB,
        shared_memory_per_multiprocessor=board.shared_kib * KIB,
        gcnArchName="",
        is_integrated=0,
        uuid="",
    )
    answers: dict[str, object] = {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_properties": properties,
        "get_device_capability": capability,
        "get_device_name": board.name,
        "is_bf16_supported": capability >= (8, 0),
        "get_rng_state": torch.zeros(16, dtype=torch.uint8),
        **dict.fromkeys(("_lazy_init", "synchronize", "set_device", "set_rng_state")),
        **dict.fromkeys(("_exchange_device", "_maybe_exchange_device"), 0),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, always(answer))
    torch.version.cuda = _CUDA_VERSION
    torch._C._cuda_getCurrentRawStream = always(0)  # noqa: SLF001 - a CPU build has none


def always(answer: object) -> Callable[..., Any]:
    return lambda *_, **__: answer
