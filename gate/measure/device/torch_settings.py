"""Settings of torch: what slows eager and compiled alike, the precision of float32, private names.

Since torch 2.9 each library and operator has a property ``fp32_precision``. The older interface is checked
against it whenever it is read: it raises once they disagree, while writing it brings both in line again.
"""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import torch

from gate.devices import DeviceKind

_EXACT_PRODUCTS = "highest"  # the older interface's word, and its default
_EXACT = ("none", "ieee")  # of the newer one: set nowhere, also not for all, or set to be exact
_T = TypeVar("_T")


@contextmanager
def without_tf32() -> Iterator[None]:
    """Multiply float32 matrices in float32 on CUDA too; on a CPU, without bfloat16.

    Both interfaces agree within, since torch's own guards read the older one. What is exact already is left
    as it is: torch 2.15 compiles anew where "none" became "ieee", though both mean the same.
    """
    newer = [(one, one.fp32_precision) for one in _list_settings()]
    matmul = _read(torch.get_float32_matmul_precision, "")
    convolution = convolves_in_tf32()
    if matmul != _EXACT_PRODUCTS:
        torch.set_float32_matmul_precision(_EXACT_PRODUCTS)
    if convolution:
        torch.backends.cudnn.allow_tf32 = False
    for one, value in newer:  # the older interface leaves some to what is set for all libraries
        if value not in _EXACT:
            one.fp32_precision = "ieee"
    try:
        yield
    finally:
        if matmul != _EXACT_PRODUCTS:
            torch.set_float32_matmul_precision(matmul or _EXACT_PRODUCTS)
        if convolution:
            torch.backends.cudnn.allow_tf32 = True
        for one, value in newer:
            if one.fp32_precision != value:
                one.fp32_precision = value


def bakes_tf32() -> bool:
    """Whether Inductor's own convolutions, which it tries when it tunes, are compiled with TF32 in them.

    Their code then keeps it, whatever is set when they are called; torch's guards and caches do not mind it.
    """
    return torch.backends.cudnn.fp32_precision == "tf32"


def convolves_in_tf32() -> bool:
    """Whether cuDNN's convolutions and recurrent layers use TF32; a CUDA graph is recorded with that."""
    return _read(_get_cudnn_tf32, True)


def describe_settings(kind: DeviceKind) -> str:
    """Describe, in a line, what a user's code may have set by now and what changes values and times."""
    parts = [f"float32 products {describe_matmul()}"]
    if kind.has_tf32:
        parts.append(f"TF32 in convolutions {describe_convolution()}")
        parts.append(f"cuDNN benchmark {torch.backends.cudnn.benchmark}")
        matmul = torch.backends.cuda.matmul
        parts.append(f"bfloat16 reduction {matmul.allow_bf16_reduced_precision_reduction}")
        parts.append(f"float16 reduction {matmul.allow_fp16_reduced_precision_reduction}")
    if torch.are_deterministic_algorithms_enabled():
        parts.append("deterministic")
    return ", ".join(parts)


def describe_matmul() -> str:
    """Describe the precision of matrix products: the older interface's word, else what the newer one says."""
    return _read(torch.get_float32_matmul_precision, str(torch.backends.cuda.matmul.fp32_precision))


def describe_convolution() -> str:
    """Describe whether convolutions may use TF32; operators of cuDNN by name where they differ."""
    cudnn: Any = torch.backends.cudnn
    differing = f"conv {cudnn.conv.fp32_precision}, rnn {cudnn.rnn.fp32_precision}"
    return _read(lambda: str(_get_cudnn_tf32()), differing)


def _list_settings() -> list[Any]:
    """List what has a precision of its own, libraries before their operators."""
    own: Any = torch.backends
    return [own.cudnn, own.cudnn.conv, own.cudnn.rnn, own.cuda.matmul, own.mkldnn.matmul]


def _get_cudnn_tf32() -> bool:
    return bool(torch.backends.cudnn.allow_tf32)


def _read(ask: Callable[[], _T], unknown: _T) -> _T:
    with suppress(RuntimeError):
        return ask()
    return unknown


def describe_runtime() -> str:
    """Describe, in a line, the threads, and whatever is not as torch and Python begin with."""
    unusual = {
        "oneDNN off": not torch.backends.mkldnn.enabled,
        "cuDNN off": not torch.backends.cudnn.enabled,
        "cuDNN deterministic": bool(torch.backends.cudnn.deterministic),
        "denormals flushed": sys.float_info.min / 2 == 0.0,
        "anomaly detection": torch.is_anomaly_enabled(),
        "a function mode": torch._C._len_torch_function_stack() > 0,  # noqa: SLF001 - nothing public says
        "a dispatch mode": torch._C._len_torch_dispatch_stack() > 0,  # noqa: SLF001
        "Python traced": sys.gettrace() is not None or sys.getprofile() is not None,
    }
    threads = torch.get_num_threads()
    return ", ".join(
        [f"{threads} thread{'s' * (threads != 1)}", *(name for name, is_so in unusual.items() if is_so)]
    )


def find_private(module: str, name: str) -> Any:  # noqa: ANN401 - private objects of torch and triton
    """Find an object by its name; None where this release has no such module, or none of that name."""
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None
