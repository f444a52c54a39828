"""The names of torch's and Triton's private modules that are read, and what is unmeasured without them.

A name that a release lacks is None, never 0: an unknown metric must not look like a good one. All are there
in torch 2.11 to 2.15.
"""

import importlib
from dataclasses import dataclass
from typing import Any

from gate.records.cases import Metric

_UTILS, _ISAS = "torch._dynamo.utils", "torch._inductor.cpu_vec_isa"


@dataclass(frozen=True, slots=True)
class PrivateName:
    module: str
    name: str
    metrics: frozenset[Metric] = frozenset()

    def find(self) -> Any:  # noqa: ANN401 - torch's and triton's
        """Find the object; None where this release has no such module, or none of that name."""
        try:
            return getattr(importlib.import_module(self.module), self.name, None)
        except ImportError:
            return None


# What was compiled.
COUNTERS = PrivateName(
    _UTILS,
    "counters",
    frozenset(
        {
            Metric.UNIQUE_GRAPHS,
            Metric.CAPTURED_OPS,
            Metric.EAGER_FALLBACKS,
            Metric.CUDAGRAPH_SKIPS,
            Metric.CUDAGRAPH_PARTITIONS,
        }
    ),
)
COMPILES = PrivateName(_UTILS, "get_compilation_metrics", frozenset({Metric.RECOMPILES, Metric.GUARDS}))
BREAKS = PrivateName(_UTILS, "graph_break_reasons", frozenset({Metric.GRAPH_BREAKS}))
# Without these old records may be counted, as in a process that compiled before, or the oldest be lost.
CLEAR_COMPILES = PrivateName(_UTILS, "clear_compilation_metrics")
LIMIT_COMPILES = PrivateName(_UTILS, "set_compilation_metrics_limit")
# Without these a location is as torch writes it, and a CUDA graph that was put off is not waited for.
SHORTEN_FILE = PrivateName("torch.utils._traceback", "shorten_filename")
GRAPH_TREES = PrivateName("torch._inductor.cudagraph_trees", "get_manager")
# Without this one the timed rounds end a stance of the measured code's own.
STANCE = PrivateName("torch._dynamo.eval_frame", "_stance")
# Only asked where the environment names no directory.
CACHE_DIRECTORY = PrivateName("torch._inductor.runtime.cache_dir_utils", "cache_dir")
# Without these each worker probes the processor itself, or compiles Triton's driver.
VALID_ISAS = PrivateName(_ISAS, "valid_vec_isa_list")
SUPPORTED_ISAS = PrivateName(_ISAS, "supported_vec_isa_list")
CHECK_ISAS = PrivateName(_ISAS, "x86_isa_checker")
TRITON_DRIVER = PrivateName("triton.runtime", "driver")
# Without these no option of torch.compile is a cause.
DYNAMO_OPTIONS = PrivateName("torch._dynamo.config", "get_config_copy")
INDUCTOR_OPTIONS = PrivateName("torch._inductor.config", "get_config_copy")
FUNCTORCH_OPTIONS = PrivateName("torch._functorch.config", "get_config_copy")

PRIVATE_NAMES = tuple(value for value in globals().values() if isinstance(value, PrivateName))
