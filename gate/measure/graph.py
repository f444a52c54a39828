"""What the compiler did, by torch's private records.

Torch writes a recompile as ``3/1: n == 1 # y = n * x # a.py:8 in f (HINT: ...)`` on the first line.
"""

import importlib
import linecache
import os
import re
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gate.git import find_checkout
from gate.measure.private import (
    BREAKS,
    CACHE_DIRECTORY,
    CLEAR_COMPILES,
    COMPILES,
    COUNTERS,
    GRAPH_TREES,
    LIMIT_COMPILES,
    SHORTEN_FILE,
)
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import GRAPH_CACHES, Fact, name_words
from gate.records.run import NESTED_BREAKS, CacheUse, Frame, GraphBreak, Recompile

MAX_CODE = 160  # characters of one line of code
_MAX_GUARD = 400
_FRAME_NUMBER = re.compile(r"^\d+/\d+: ")  # the frame, and how often it was compiled before
_SEPARATOR = "  # "
# Of the user's code; torch's own stands in brackets.
_LOCATION = re.compile(r"(?:^|  # )(?P<file>[^#(][^#]*?):(?P<line>\d+) in (?P<function>\S+)")
_HINT = re.compile(r"\s*\(HINT: .*")
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d+$")  # behind a graph break; the number is its line
# Addresses, of another value in each process.
_ADDRESS = re.compile(r"(?<=_id\()(.+), \d+(?=\))| at 0x[0-9a-f]+")
_MAX_COMPILES = 4096  # records kept; torch keeps 64 by default, fewer than a model with breaks may have
_MAX_REASON = 200  # characters; the first line of a reason names its kind
_MAX_FRAMES = 12  # of a stack, the innermost
_REGISTERED = re.compile(r"/(gb\d{4,6})\.html")  # in the address of torch's page on this kind of break
_NESTED = f'"{NESTED_BREAKS}": true'  # in the settings that each compile records
# Of a branch on a tensor's value torch records a function of its own; its error messages describe it.
_JUMP, _BRANCH = "generic_jump ", "Data-dependent branching: "
_US = 1e-6
# Fields of torch's CompilationMetrics -> our names. Each is wall time and includes those it calls:
# dynamo > aot_autograd > inductor > code_generation.
_PHASES = {
    "dynamo": "dynamo_cumulative_compile_time_us",
    "aot_autograd": "aot_autograd_cumulative_compile_time_us",
    "inductor": "inductor_cumulative_compile_time_us",
    "code_generation": "inductor_code_gen_cumulative_compile_time_us",
    "backward": "backward_cumulative_compile_time_us",
    "triton": "triton_compile_time_us",
    "autotune_at_launch": "runtime_triton_autotune_time_us",
    "cudagraph_capture": "runtime_cudagraphify_time_us",
    "garbage_collection": "gc_time_us",
}
# Where a frame that was not compiled is, best first: the line that stopped it, or its beginning.
_LOCATION_FIELDS = (("fail_user_frame_filename", "fail_user_frame_lineno"), ("co_filename", "co_firstlineno"))
# Caches of compiled graphs by our name: the group of counters, and what the names in it begin with. AOT
# autograd's holds whole compiled graphs and is asked first.
_CACHES = {
    "aot_autograd": ("aot_autograd", "autograd_cache"),
    "fx_graph": ("inductor", "fxgraph_cache"),
    "kernel": ("inductor", "async_compile_cache"),  # of Triton's, loaded or compiled
}
_KERNELS, _BUNDLES = "kernel", "triton_bundle"
_COMPILE_THEMSELVES = ("_higher_order_ops", f"nn{os.sep}attention")  # in torch's directory
# What torch writes of a function that it does not trace, below its first line.
_FUNCTION = re.compile(
    r"Developer debug context: "
    r"(?:module: ([\w.]+), qualname: ([\w.<>]+)|builtin (\w+)|<function ([\w.<>]+) at)"
)


def list_recompiles(records: Sequence[Any], directory: str) -> Iterable[Recompile]:
    files = _list_files(records)
    for record in records:
        if reason := getattr(record, "recompile_reason", None):
            yield _parse_reason(reason.strip().partition("\n")[0], record, files, directory)


def _parse_reason(reason: str, record: Any, files: Mapping[str, str], directory: str) -> Recompile:  # noqa: ANN401 - torch's
    guard, _, rest = _FRAME_NUMBER.sub("", reason).partition(_SEPARATOR)
    location = _LOCATION.search(rest)
    file, line, function = getattr(record, "co_filename", ""), getattr(record, "co_firstlineno", None), ""
    if location:
        file, line = files.get(location["file"], location["file"]), int(location["line"])
    function = location["function"] if location else getattr(record, "co_name", "")
    return Recompile(
        guard=" ".join(_ADDRESS.sub(r"\1", _HINT.sub("", guard)).split())[:_MAX_GUARD],
        code=" ".join(rest[: location.start()].split())[:MAX_CODE] if location else "",
        location=format_location(file, line, directory) if file else "",
        function=_RESUMED.sub(r"\1", function or "")[:MAX_CODE],
    )


def _list_files(records: Iterable[Any]) -> dict[str, str]:
    shorten = SHORTEN_FILE.find()
    compiled = (getattr(record, "co_filename", None) for record in records)
    return {shorten(file): file for file in (*linecache.cache, *compiled) if file} if shorten else {}


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphReport:
    counts: Mapping[Metric, int]
    caches: Mapping[str, CacheUse] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)  # of Dynamo's, by which it records
    graph_breaks: tuple[GraphBreak, ...] = ()
    recompile_reasons: tuple[Recompile, ...] = ()
    phases_s: Mapping[str, float] = field(default_factory=dict)
    skipped: tuple[Fact, ...] = ()  # frames that were left to eager, and why
    unknown: tuple[Fact, ...] = ()  # metrics that this torch does not report

    @property
    def cache(self) -> CacheUse:
        uses = [self.caches[name] for name in GRAPH_CACHES if name in self.caches]
        missed = sum(use.misses + use.bypasses for use in uses)
        return CacheUse(hits=sum(use.hits for use in uses), misses=missed)


def start_observation() -> None:
    if (counters := _get_counters()) is not None:
        counters.clear()
    if clear := CLEAR_COMPILES.find():
        clear()
    if limit := LIMIT_COMPILES.find():
        limit(_MAX_COMPILES)
    if (breaks := BREAKS.find()) is not None:
        breaks.clear()


def observe_graphs(directory: str) -> GraphReport:
    records, counters = _list_compiles(), _get_counters()
    breaks = BREAKS.find()
    recompiles = tuple(list_recompiles(records or (), directory))
    phases_us = {phase: _sum_field(records, name) for phase, name in _PHASES.items()}
    configs = [config for record in records or () if (config := getattr(record, "dynamo_config", None))]
    nested = {NESTED_BREAKS: "on" if any(_NESTED in config for config in configs) else "off"}
    counts, unknown = {}, []
    for metric, value in (
        (Metric.GRAPH_BREAKS, None if breaks is None else len(breaks)),
        (Metric.RECOMPILES, None if records is None else len(recompiles)),
        (Metric.GUARDS, _sum_field(records, "guard_count")),
        *_count_from(counters).items(),
    ):
        if value is None:
            unknown.append(Fact(code=Code.UNKNOWN_HERE, metrics=(metric,)))
        else:
            counts[metric] = value
    return GraphReport(
        counts=counts,
        caches=_read_caches(counters, records),
        settings=nested if configs else {},
        graph_breaks=tuple(_describe_break(entry, directory) for entry in breaks or ()),
        recompile_reasons=recompiles,
        phases_s={phase: total * _US for phase, total in phases_us.items() if total},
        skipped=tuple(_list_skipped(records, directory)),
        unknown=tuple(unknown),
    )


def count_compiles() -> int:
    """Count the frames that Dynamo has looked at, and the graphs compiled, captured or tuned in a call."""
    counters = _get_counters()
    frames = counters["frames"]["total"] if counters is not None else 0
    return int(frames) + len(_list_compiles() or ())


def count_chosen_compiles() -> int:
    """Count compiled frames, without those of torch's operators that compile themselves in eager calls."""
    own = tuple(f"{_find_torch()}{part}{os.sep}" for part in _COMPILE_THEMSELVES)
    files = (str(getattr(record, "co_filename", "")) for record in _list_compiles() or ())
    return sum(not file.startswith(own) for file in files)


def awaits_capture(device: int) -> bool:
    """Whether the last call ran a CUDA graph's warm-up: a later one captures it."""
    find_manager = GRAPH_TREES.find()
    manager = find_manager(device, create_if_none_exists=False) if find_manager else None
    return bool(getattr(manager, "in_warmup", False))


def get_cache_directory() -> Path:
    if directory := os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
        return Path(directory)
    find_default = CACHE_DIRECTORY.find()
    return Path(find_default()) if find_default else Path(os.devnull)


def is_recompile_error(error: BaseException) -> bool:
    """Whether the ``fail_on_recompile`` stance raised this; torch has no type of its own for it."""
    return isinstance(error, RuntimeError) and "fail_on_recompile" in str(error)


def format_location(file: str, line: int | None, directory: str) -> str:
    path, top = Path(file), Path(directory)
    if "site-packages" in path.parts:  # of an environment that may lie in the checkout
        path = Path(*path.parts[path.parts.index("site-packages") + 1 :])
    elif directory and path.is_relative_to(top):
        path = path.relative_to(top)
    elif directory and path.resolve().is_relative_to(find_checkout(top) or top.resolve()):
        path = Path(os.path.relpath(path.resolve(), top.resolve()))  # outside of the directory of gate.yml
    return f"{path}:{line}" if line else str(path)


def _get_counters() -> Any:  # noqa: ANN401 - a private object of torch
    return COUNTERS.find()


def _list_compiles() -> list[Any] | None:
    get_metrics = COMPILES.find()
    return list(get_metrics()) if get_metrics else None


def _count_from(counters: Any) -> dict[Metric, int | None]:  # noqa: ANN401 - see _get_counters
    def count(group: str, name: str) -> int | None:
        return None if counters is None else counters[group][name]

    frames, compiled = count("frames", "total"), count("frames", "ok")
    return {
        Metric.UNIQUE_GRAPHS: count("stats", "unique_graphs"),
        Metric.CAPTURED_OPS: count("stats", "calls_captured"),
        # A frame that Dynamo gave up on runs eagerly: something it does not support, or too many recompiles.
        Metric.EAGER_FALLBACKS: None if frames is None or compiled is None else frames - compiled,
        Metric.CUDAGRAPH_SKIPS: count("inductor", "cudagraph_skips"),
        # What cannot be captured cuts a graph in pieces; since torch 2.11 that skips none.
        Metric.CUDAGRAPH_PARTITIONS: count("inductor", "cudagraph_partitions"),
    }


def _read_caches(counters: Any, records: list[Any] | None) -> dict[str, CacheUse]:  # noqa: ANN401 - as above
    """Read how each cache was used that was asked at all.

    A graph may be found without its kernels: Triton's binaries are kept in a bundle next to each, and a lost
    one is recompiled while the graph counts as found.
    """
    if counters is None:
        return {}
    uses = {
        name: CacheUse(
            hits=counters[group][f"{prefix}_hit"],
            misses=counters[group][f"{prefix}_miss"],
            bypasses=counters[group][f"{prefix}_bypass"],
        )
        for name, (group, prefix) in _CACHES.items()
    }
    uses[_KERNELS] = _correct_kernels(uses[_KERNELS], uses["fx_graph"])
    uses[_BUNDLES] = CacheUse(hits=_sum_field(records, "num_triton_bundles") or 0)
    return {name: use for name, use in uses.items() if use != CacheUse()}


def _correct_kernels(kernels: CacheUse, graphs: CacheUse) -> CacheUse:
    """Correct torch's counts of kernels in a process.

    Torch counts a kernel as missed when it is asked for, and as found as well once it is. A graph that is
    found adds what was counted when it was compiled (``counter_deltas``): where other graphs were missed,
    nobody knows which kernels belong to which.
    """
    if graphs.hits and graphs.misses + graphs.bypasses:
        return CacheUse()
    asked = kernels.misses // 2 if graphs.hits else kernels.misses
    return CacheUse(hits=kernels.hits, misses=max(0, asked - kernels.hits))


def _sum_field(records: list[Any] | None, name: str) -> int | None:
    return None if records is None else sum(getattr(record, name, None) or 0 for record in records)


def _describe_break(entry: Any, directory: str) -> GraphBreak:  # noqa: ANN401 - a private object of torch
    torch_directory = _find_torch()
    whole, reason = list(getattr(entry, "user_stack", ())), str(getattr(entry, "reason", entry))
    frames = [frame for frame in whole if not frame.filename.startswith(torch_directory)]
    stack = tuple(_describe_frame(frame, directory) for frame in frames[-_MAX_FRAMES:])
    last = _describe_frame(whole[-1], directory) if whole else None
    registered = _REGISTERED.search(reason)
    return GraphBreak(
        reason=_shorten(reason),
        location=next((frame.location for frame in (*stack[-1:], last) if frame), ""),
        stack=stack,
        innermost=last,
        registry=registered[1].upper() if registered else "",
    )


def _find_torch() -> str:
    return f"{Path(importlib.import_module('torch').__file__ or '').parent}{os.sep}"


def _describe_frame(frame: traceback.FrameSummary, directory: str) -> Frame:
    code = linecache.getline(frame.filename, frame.lineno or 0).strip()
    location = format_location(frame.filename, frame.lineno, directory)
    name = _RESUMED.sub(r"\1", frame.name)
    return Frame(location=location, function=name[:MAX_CODE], code=code[:MAX_CODE])


def _list_skipped(records: list[Any] | None, directory: str) -> Iterable[Fact]:
    for record in records or ():
        if reason := getattr(record, "fail_reason", None):
            names = name_words(reason=_shorten(reason), location=_locate_failure(record, directory))
            yield Fact(code=Code.LEFT_TO_EAGER, names=names)


def _locate_failure(record: Any, directory: str) -> str:  # noqa: ANN401 - a private object of torch
    for file_field, line_field in _LOCATION_FIELDS:
        if file := getattr(record, file_field, None):
            return format_location(file, getattr(record, line_field, None), directory)
    return ""  # too many recompiles: torch names no location


def _shorten(reason: str) -> str:
    first = " ".join(reason.strip().partition("\n")[0].split())
    first = f"{_BRANCH}{first.removeprefix(_JUMP)}" if first.startswith(_JUMP) else first
    match = _FUNCTION.search(reason)
    name = ".".join(part for part in match.groups() if part) if match else ""
    return f"{first}: {name}"[:_MAX_REASON] if name and name not in first else first[:_MAX_REASON]
