"""The precision of float32 products and convolutions, by both of torch's interfaces.

Since torch 2.9 each library and operator has a property ``fp32_precision``. Reading the older interface
raises once both disagree; writing it brings both in line again.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import torch

_EXACT_PRODUCTS = "highest"  # the older interface's word, and its default
_EXACT = ("none", "ieee")  # of the newer one: set nowhere, also not for all, or set to be exact
_T = TypeVar("_T")


@contextmanager
def without_tf32() -> Iterator[None]:
    """Multiply float32 matrices in float32 on CUDA too; on a CPU, without bfloat16.

    Both interfaces agree within, since torch's own guards read the older one. What is exact already is left
    as it is: torch 2.15 compiles anew where "none" became "ieee", though both mean the same.
    """
    newer = [(setting, setting.fp32_precision) for setting in _list_settings()]
    matmul = _read(torch.get_float32_matmul_precision, "")
    convolution = convolves_in_tf32()
    if matmul != _EXACT_PRODUCTS:
        torch.set_float32_matmul_precision(_EXACT_PRODUCTS)
    if convolution:
        torch.backends.cudnn.allow_tf32 = False
    for setting, value in newer:  # the older interface leaves some to what is set for all libraries
        if value not in _EXACT:
            setting.fp32_precision = "ieee"
    try:
        yield
    finally:
        if matmul != _EXACT_PRODUCTS:
            torch.set_float32_matmul_precision(matmul or _EXACT_PRODUCTS)
        if convolution:
            torch.backends.cudnn.allow_tf32 = True
        for setting, value in newer:
            if setting.fp32_precision != value:
                setting.fp32_precision = value


def bakes_tf32() -> bool:
    """Whether Inductor's own convolutions, which it tries when it tunes, are compiled with TF32 in them."""
    return torch.backends.cudnn.fp32_precision == "tf32"


def convolves_in_tf32() -> bool:
    """Whether convolutions and recurrent layers of cuDNN use TF32; a CUDA graph is recorded with that."""
    return _read(lambda: bool(torch.backends.cudnn.allow_tf32), True)


def describe_matmul() -> str:
    return _read(torch.get_float32_matmul_precision, str(torch.backends.cuda.matmul.fp32_precision))


def describe_convolution() -> str:
    cudnn: Any = torch.backends.cudnn
    differing = f"conv {cudnn.conv.fp32_precision}, rnn {cudnn.rnn.fp32_precision}"
    return _read(lambda: str(cudnn.allow_tf32), differing)


def _list_settings() -> list[Any]:
    backends: Any = torch.backends
    cudnn = backends.cudnn
    return [cudnn, cudnn.conv, cudnn.rnn, backends.cuda.matmul, backends.mkldnn.matmul]


def _read(ask: Callable[[], _T], unknown: _T) -> _T:
    with suppress(RuntimeError):
        return ask()
    return unknown
