"""What a process may have set for all of torch, and makes eager and compiled calls slower alike."""

from __future__ import annotations

import sys

import torch


def describe_runtime() -> str:
    """Describe, in a line, the threads, and whatever is not as torch and Python begin with."""
    unusual = {
        "oneDNN off": not torch.backends.mkldnn.enabled,
        "cuDNN off": not torch.backends.cudnn.enabled,
        "cuDNN deterministic": bool(torch.backends.cudnn.deterministic),
        "denormals flushed": sys.float_info.min / 2 == 0.0,
        "anomaly detection": torch.is_anomaly_enabled(),
        "a function mode": torch._C._len_torch_function_stack() > 0,  # noqa: SLF001 - nothing public tells
        "a dispatch mode": torch._C._len_torch_dispatch_stack() > 0,  # noqa: SLF001
        "Python traced": sys.gettrace() is not None or sys.getprofile() is not None,
    }
    threads = torch.get_num_threads()
    return ", ".join(
        [f"{threads} thread{'s' * (threads != 1)}", *(name for name, is_so in unusual.items() if is_so)]
    )
