"""What watches the Python code of this process: whoever measures beside it measures it too. Torch-free."""

from __future__ import annotations

import sys
import threading
import tracemalloc

from gate.errors import UsageError

_TOOL_IDS = range(6)  # of sys.monitoring


def list_tracers() -> frozenset[str]:
    """Name what watches: `coverage (sys.settrace)`."""
    hooks = {
        "sys.settrace": sys.gettrace() or threading.gettrace(),
        "sys.setprofile": sys.getprofile() or threading.getprofile(),
    }
    found = {f"{_name_package(hook)} ({way})" for way, hook in hooks.items() if hook is not None}
    if sys.version_info >= (3, 12):
        tools = filter(None, map(sys.monitoring.get_tool, _TOOL_IDS))
        found |= {f"{tool} (sys.monitoring)" for tool in tools}
    if tracemalloc.is_tracing():
        found.add("tracemalloc")
    return frozenset(found)


def refuse_tracers(before: frozenset[str]) -> None:
    """Refuse to measure beside what has begun to watch since ``before``.

    Raises:
        UsageError: Something has: its time would be taken for the model's, and its calls for the compiler's.
    """
    if begun := sorted(list_tracers() - before):
        raise UsageError(
            f"{', '.join(begun)} traces what is measured: times and calls would be its own; "
            "start it in no conftest.py, fixture or `args` of gate.yml",
            "Start it in no conftest.py, fixture or `args` of gate.yml.",
        )


def _name_package(hook: object) -> str:
    """Name the package that a hook comes from: a function's, or a type's as that of coverage's tracer."""
    module = getattr(hook, "__module__", None) or type(hook).__module__
    return str(module).partition(".")[0]
