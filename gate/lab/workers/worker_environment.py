"""The environment variables of a worker.

It inherits the caller's, by which compilers, drivers and model caches are found, but not what would change
the measurement without a trace in the environment's fingerprint. ``PYTHONPATH`` stays, since clusters find
torch by it; relative entries become absolute, because a worker runs in its arm's directory.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.protocol import WorkerRole

# Settings of the measured stack, of threads and allocators, and of tools that hook into every Python
# process.
_STACK_PREFIXES = (
    "TORCH", "PYTORCH_", "TRITON", "INDUCTOR_", "AOT_", "ATEN_",
    "NVIDIA_TF32", "CUBLAS", "CUDNN", "CUDA_CACHE_", "CUDA_LAUNCH_BLOCKING",
)  # fmt: skip
# Set on many machines, and of no interest.
_TOOL_PREFIXES = ("PYTEST_", "COVERAGE_", "COV_CORE_", "CODSPEED_", "PYTHON")
_ALLOCATOR_PREFIXES = ("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "MALLOC_")
_DROPPED_PREFIXES = (*_STACK_PREFIXES, *_ALLOCATOR_PREFIXES, *_TOOL_PREFIXES)
# These name where something is found, not how it runs; and without the last one cuBLAS refuses what a model
# that asks for deterministic algorithms needs.
_KEPT = {
    "TORCH_HOME", "TORCH_EXTENSIONS_DIR", "TRITON_LIBCUDA_PATH", "TRITON_PTXAS_PATH",
    "TRITON_PTXAS_BLACKWELL_PATH", "TRITON_CUOBJDUMP_PATH", "TRITON_NVDISASM_PATH",
    "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE",
    "CUBLAS_WORKSPACE_CONFIG",
}  # fmt: skip
_FIXED = {
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # a pool that is ready sometimes makes compile time bimodal
    "TORCHINDUCTOR_FX_GRAPH_CACHE": "1",  # the defaults, said aloud: warm compile time relies on them
    "TORCHINDUCTOR_AUTOGRAD_CACHE": "1",
    "PYTHONFAULTHANDLER": "1",  # a crash, and a hang that is aborted, leave a traceback in the log
    "PYTHONUNBUFFERED": "1",  # a worker that is killed has said all it had to say
    "MALLOC_ARENA_MAX": "1",  # arenas per thread make peak memory depend on scheduling
    "HF_HUB_OFFLINE": "1",  # reference models have random weights: nothing is downloaded
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # cuda:1 is what nvidia-smi and the lock call 1
}
# The number of Python calls in a compile follows the order of sets: it is the same in each process of a role.
# But the second process has another order than the first, as any two processes of a user have: what takes its
# graph from the order of a set of strings finds nothing in the caches.
_HASH_SEEDS = {WorkerRole.WARM: "1"}
_FIRST_HASH_SEED = "0"


def make_worker_environment(
    inherited: Mapping[str, str],
    cache: Path,
    temporary: Path,
    threads: int,
    role: WorkerRole = WorkerRole.COLD,
) -> dict[str, str]:
    """``cache`` is one trial's; ``temporary``, with the precompiled headers, is the run's."""
    return {
        **keep_variables(inherited),
        **_FIXED,
        "PYTHONHASHSEED": _HASH_SEEDS.get(role, _FIRST_HASH_SEED),
        "OMP_NUM_THREADS": str(threads),
        "TMPDIR": str(temporary),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "CUDA_CACHE_PATH": str(cache / "cuda"),
    }


def keep_variables(inherited: Mapping[str, str]) -> dict[str, str]:
    dropped = set(list_dropped_variables(inherited))
    kept = {name: value for name, value in inherited.items() if name not in dropped}
    entries = filter(None, kept.pop("PYTHONPATH", "").split(os.pathsep))
    if python_path := os.pathsep.join(str(Path(entry).absolute()) for entry in entries):
        kept["PYTHONPATH"] = python_path
    return kept


def list_dropped_variables(inherited: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(
        sorted(name for name in inherited if name.startswith(_DROPPED_PREFIXES) and name not in _KEPT)
    )


def note_dropped_variables(inherited: Mapping[str, str], *, of_stack: bool = False) -> tuple[Fact, ...]:
    """Note the variables that workers do not inherit and that somebody may miss.

    ``of_stack``: only settings of torch and its libraries, which make another program of the same code.
    """
    names = [name for name in list_dropped_variables(inherited) if not name.startswith(_TOOL_PREFIXES)]
    if of_stack:
        names = [name for name in names if name.startswith(_STACK_PREFIXES) and not name.endswith("_DIR")]
    return (Fact(code=Code.VARIABLES_DROPPED, names={"variables": tuple(names)}),) if names else ()
