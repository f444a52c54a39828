"""Check a torch wheel that is built for CUDA, on a machine without a device; standard library and torch only.

    python -m venv cuda && cuda/bin/pip install torch==2.11.0 && cuda/bin/python tools/check_cuda_wheel.py

It looks for every name that the measuring side asks torch for on a GPU, and for what torch says of
the keys that it reads there. Run it for the oldest torch that is supported and for the newest: it is
gigabytes, so CI does not.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

# Public names; what a function must take stands behind it.
CALLED = {
    "torch.cuda": {
        "synchronize": "device",
        "memory_allocated": "device",
        "max_memory_allocated": "device",
        "memory_reserved": "device",
        "reset_peak_memory_stats": "device",
        "memory_snapshot": "",
        "memory_stats": "device",
        "empty_cache": "",
        "set_device": "device",
        "get_device_properties": "device",
        "get_device_capability": "device",
        "device_count": "",
        "init": "",
        "is_available": "",
        "is_initialized": "",
        "Event": "enable_timing",
        "_sleep": "cycles",
        "get_rng_state": "device",
    },
    "torch.compiler": {"cudagraph_mark_step_begin": "", "set_stance": "stance", "reset": ""},
    "torch.profiler": {"profile": "activities", "ProfilerActivity": ""},
    "torch.utils.flop_counter": {"FlopCounterMode": "display"},
    "torch._dynamo.utils": {
        "counters": "",
        "graph_break_reasons": "",
        "get_compilation_metrics": "",
        "set_compilation_metrics_limit": "",
        "clear_compilation_metrics": "",
    },
}
# Fields of torch's CompilationMetrics that become phases of a compile.
METRICS = (
    *("dynamo_cumulative_compile_time_us", "aot_autograd_cumulative_compile_time_us", "recompile_reason"),
    *("inductor_cumulative_compile_time_us", "inductor_code_gen_cumulative_compile_time_us", "guard_count"),
    *("backward_cumulative_compile_time_us", "triton_compile_time_us", "fail_reason"),
    *("runtime_triton_autotune_time_us", "runtime_cudagraphify_time_us", "gc_time_us", "num_triton_bundles"),
)
PROPERTIES = ("name", "major", "minor", "multi_processor_count", "total_memory", "uuid")
SEGMENT_KEYS = ("device", "total_size", "allocated_size", "segment_pool_id")
# By the part of torch that counts.
COUNTERS = {
    "_inductor": (
        *("cudagraph_skips", "cudagraph_partitions", "fxgraph_cache_hit", "fxgraph_cache_miss"),
        *("async_compile_cache_hit", "async_compile_cache_miss"),
    ),
    "_functorch": ("autograd_cache_hit", "autograd_cache_miss"),
}
PRECISIONS = ("backends.cuda.matmul", "backends.cudnn", "backends.cudnn.conv", "backends.cudnn.rnn")

Problems = Iterator[str]


def check_build() -> Problems:
    """The wheel is one for CUDA, with Triton and a compiler of its own."""
    torch = importlib.import_module("torch")
    if not torch.version.cuda:
        yield f"torch {torch.__version__} is not built for CUDA"
    try:
        triton = importlib.import_module("triton")
    except ImportError as error:
        yield f"triton cannot be imported: {error}"
        return
    tools = Path(str(triton.__file__)).parent / "backends" / "nvidia" / "bin"
    if not list(tools.glob("ptxas*")):
        yield f"triton {triton.__version__} has no ptxas in {tools}"


def check_names() -> Problems:
    """Every name is there, and takes what it is called with."""
    for module, names in CALLED.items():
        loaded = importlib.import_module(module)
        for name, parameter in names.items():
            attribute = getattr(loaded, name, None)
            if attribute is None:
                yield f"{module} has no {name}"
            elif parameter and not _takes(attribute, parameter):
                yield f"{module}.{name} takes no {parameter}"


def _takes(function: Callable[..., object], parameter: str) -> bool:
    try:
        return parameter in inspect.signature(function).parameters
    except ValueError:  # written in C: its first line of documentation says what it takes
        return True


def check_properties() -> Problems:
    """The class of a device's properties, which a wheel for CUDA has without a device."""
    native = importlib.import_module("torch._C")
    properties = getattr(native, "_CudaDeviceProperties", None)
    if properties is None:
        yield "torch._C has no _CudaDeviceProperties"
    for name in PROPERTIES if properties else ():
        if not hasattr(properties, name):
            yield f"a device's properties have no {name}"


def check_documented() -> Problems:
    """Keys that only a device shows: what torch's own documentation and sources say of them."""
    memory = importlib.import_module("torch.cuda.memory")
    trees = importlib.import_module("torch._inductor.cudagraph_trees")  # reads a segment's pool itself
    source = f"{inspect.getsource(memory)}{inspect.getsource(trees)}"
    for key in SEGMENT_KEYS:
        if key not in source:
            yield f"torch neither documents nor reads a segment's {key}"
    if "reserved_bytes.all.current" not in source and "reserved_bytes.{all" not in source:
        yield "torch.cuda.memory_stats documents no reserved_bytes"
    sources = Path(str(memory.__file__)).parents[1]
    for part, names in COUNTERS.items():
        text = "".join(path.read_text(encoding="utf-8") for path in (sources / part).rglob("*.py"))
        missing = (name for name in names if not re.search(rf"[\"']{name}[\"']", text))
        yield from (f"torch.{part} counts no {name}" for name in missing)


def check_metrics() -> Problems:
    """Fields of the records of a compile."""
    fields = importlib.import_module("torch._dynamo.utils").CompilationMetrics.__dataclass_fields__
    for name in METRICS:
        if name not in fields:
            yield f"CompilationMetrics has no {name}"


def check_precision() -> Problems:
    """Both interfaces to TF32, read and written without a device."""
    torch = importlib.import_module("torch")
    for path in PRECISIONS:
        value: object = torch
        for name in path.split("."):
            value = getattr(value, name, None)
        if not hasattr(value, "fp32_precision"):
            yield f"torch.{path} has no fp32_precision"
    torch.set_float32_matmul_precision("high")
    if torch.get_float32_matmul_precision() != "high":
        yield "float32_matmul_precision is not what it was set to"
    torch.set_float32_matmul_precision("highest")


CHECKS = (check_build, check_names, check_properties, check_documented, check_metrics, check_precision)


def main() -> int:
    """Check, print what is missing, and return the process exit code."""
    torch = importlib.import_module("torch")
    print(f"torch {torch.__version__}, CUDA {torch.version.cuda}, {torch.cuda.device_count()} devices")
    problems = [problem for check in CHECKS for problem in check()]
    print("\n".join(problems) or "nothing is missing")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
