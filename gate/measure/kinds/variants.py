"""Kinds of cases that this process compiles: several inputs a call, requests, saved caches, parts."""

import copy
import gc
import os
import shutil
import statistics
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.flop_counter import FlopCounterMode

from gate.errors import UsageError
from gate.kinds import Dims, Part, get_setting
from gate.measure.device.device import Device
from gate.measure.graph import GraphReport, get_cache_directory
from gate.measure.kinds.protocol import Protocol, Seen, join_workloads
from gate.measure.rounds import Step, compute_percentile, time_calls
from gate.measure.workload.build import (
    SEED,
    Function,
    Subject,
    build_workload,
    compile_function,
    make_function,
)
from gate.measure.workload.tensors import iterate_tensors, list_held, map_tensors
from gate.records.cases import Case, Metric, Task, collect_columns
from gate.workload import Workload

_CALLS = 5  # of each shape, whose median is recorded
_DYNAMIC = {Dims.AUTOMATIC: None, Dims.STATIC: False, Dims.DYNAMIC: True, Dims.MARKED: None}
_EPOCHS = 5  # of each, in turn; the ratio of their medians is recorded
IDLE_S = 0.5  # before the first request: what was warm may have cooled down
_STATE = (torch.Tensor, dict, list, set)  # with a module's own tables of parameters and buffers
_FILE = "artifacts.bin"  # in the trial's directory, next to Inductor's
_MOVED = "moved"


class Shapes(Protocol):
    """Each input of a call is a pair: the positional arguments of one shape, and its keyword arguments."""

    def build(self, seed: int = SEED) -> Workload:
        cases = (
            replace(self.case, arguments={**self.case.arguments, **arguments})
            for arguments in _list_arguments(self.case)
        )
        return join_workloads([build_workload(case, seed) for case in cases])

    def spread(self, function: Function) -> Function:
        def run_shapes(*shapes: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:  # noqa: ANN401 - any model's
            returned = tuple(function(*inputs, **kwargs) for inputs, kwargs in shapes)
            return sum(returned) if self.case.task is Task.TRAINING else returned

        return run_shapes

    def compile(self, subject: Subject) -> Function:
        dims = get_setting(self.case, "dims", Dims)
        if dims is Dims.MARKED:
            mark_varying(subject.workload.inputs)
        return self.spread(compile_function(subject.plain, replace(self.case, dynamic=_DYNAMIC[dims])))

    def observe(self, subject: Subject, compiled: Function, step: Step) -> Seen:
        """Time each shape by itself; without its backward pass."""
        parts_s = {}
        for arguments, shape in zip(_list_arguments(self.case), subject.workload.inputs, strict=True):
            name = ", ".join(f"{key}={value}" for key, value in arguments.items())  # sequence=32
            call = partial(compiled, shape)
            times_s = (time_calls(call, subject.device, 1) for _ in range(_CALLS))
            parts_s[name] = statistics.median(times_s)
        return Seen(parts_s=parts_s)


def mark_varying(shapes: tuple[Any, ...]) -> None:
    for alike in collect_columns(dict(iterate_tensors(shape)) for shape in shapes).values():
        for dim in range(alike[0].dim()):
            if len({tensor.shape[dim] for tensor in alike}) > 1:
                for tensor in alike:
                    torch._dynamo.mark_dynamic(tensor, dim)  # noqa: SLF001 - its documented name


def _list_arguments(case: Case) -> Iterator[dict[str, object]]:
    vary: dict[str, list[object]] = get_setting(case, "vary", dict)
    for values in zip(*vary.values(), strict=True):
        yield dict(zip(vary, values, strict=True))


class Data(Shapes):
    """One call is an epoch; its batches have one shape and different numbers."""

    def build(self, seed: int = SEED) -> Workload:
        batches = get_setting(self.case, "batches", int)
        return join_workloads([build_workload(self.case, seed + 1000 * index) for index in range(batches)])

    def compile(self, subject: Subject) -> Function:
        return self.spread(compile_function(subject.plain, self.case))

    def make_eager_step(self, subject: Subject) -> Step:
        return self.make_compiled_step(subject, subject.function)

    def make_compiled_step(self, subject: Subject, compiled: Function) -> Step:
        loader = make_loader(subject, get_setting(self.case, "workers", int))
        device = subject.device.name

        def run_loader() -> None:
            moved = (
                map_tensors(lambda tensor: tensor.to(device, non_blocking=True), batch) for batch in loader
            )
            run_epoch(subject, compiled, moved)

        return run_loader

    def observe(self, subject: Subject, compiled: Function, step: Step) -> Seen:
        def run_memory() -> None:
            run_epoch(subject, compiled, subject.workload.inputs)

        times_s: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(_EPOCHS):
            for loads, call in ((True, step), (False, run_memory)):
                times_s[loads].append(time_calls(call, subject.device, 1))
        ratio = statistics.median(times_s[True]) / statistics.median(times_s[False])
        return Seen(samples={Metric.DATA_RATIO: (ratio,)})


def make_loader(subject: Subject, workers: int) -> DataLoader[Any]:
    """Make a loader of the subject's batches, in memory that a GPU reads by itself.

    Its processes are forked, and must not free what other cases left in this one: a session of onnxruntime
    would wait there for threads that a fork does not have.
    """
    gc.collect()
    # On the processor; any sequence is a dataset that is read item by item.
    batches: Any = map_tensors(lambda tensor: tensor.detach().cpu(), subject.workload.inputs)
    return DataLoader(
        batches,
        batch_size=None,
        num_workers=workers,
        persistent_workers=workers > 0,
        pin_memory=subject.device.kind.is_gpu,
    )


def run_epoch(subject: Subject, function: Function, batches: Iterable[Any]) -> None:
    for batch in batches:
        returned = function(batch)
        if subject.is_training:
            returned.backward()
            if subject.optimizer is not None:
                subject.optimizer.step()
            for leaf in subject.list_leaves():
                leaf.grad = None


class Serving(Protocol):
    def observe(self, subject: Subject, compiled: Function, step: Step) -> Seen:
        interval_s = get_setting(self.case, "interval_s", float)
        requests = get_setting(self.case, "requests", int)
        times_s = serve(step, subject.device, interval_s, requests)
        return Seen(
            samples={
                Metric.FIRST_REQUEST: times_s[:1],
                Metric.REQUEST_P50: (compute_percentile(times_s[1:], 0.50),),
                Metric.REQUEST_P95: (compute_percentile(times_s[1:], 0.95),),
                Metric.REQUEST_P99: (compute_percentile(times_s[1:], 0.99),),
            }
        )


def serve(step: Step, device: Device, interval_s: float, requests: int) -> tuple[float, ...]:
    """Return the seconds of each request from its arrival; one arrives every ``interval_s`` seconds."""
    device.synchronize()
    time.sleep(IDLE_S)
    begun, times_s = time.perf_counter(), []
    for index in range(requests):
        arrival = begun + index * interval_s
        time.sleep(max(0.0, arrival - time.perf_counter()))
        step()
        device.synchronize()
        times_s.append(time.perf_counter() - arrival)
    return tuple(times_s)


class Cache(Protocol):
    def enter(self, *, is_cold: bool) -> None:
        """In the second process, take an empty directory for the caches and load what was saved.

        Raises:
            UsageError: Nothing was saved.
        """
        if is_cold:
            return
        saved = _get_path()
        if not saved.is_file():
            fix = "torch saves none of this backend; remove `kind: cache` from the case."
            raise UsageError("the first process saved no cache artifacts", fix)
        moved = saved.parent / _MOVED
        shutil.rmtree(moved, ignore_errors=True)  # an earlier process of this pair's arm filled it
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(moved)
        os.environ["TRITON_CACHE_DIR"] = str(moved / "triton")  # else the first process's, which is full
        torch.compiler.load_cache_artifacts(saved.read_bytes())

    def count_misses(self, report: GraphReport) -> int:
        return report.cache.misses if report.cache.hits else max(1, report.cache.misses)

    def observe(self, subject: Subject, compiled: Function, step: Step) -> Seen:
        size = _save_artifacts()
        return Seen(samples={Metric.PACKAGE_BYTES: (size,)} if size else {})

    def leave(self) -> None:
        """Save the artifacts where there are none: a pair that goes on after an interruption lost them."""
        if not _get_path().is_file():
            _save_artifacts()


def _get_path() -> Path:
    return get_cache_directory().parent / _FILE


def _save_artifacts() -> int:
    """Save what this process compiled or found, and return its bytes; 0 where torch saves none of it."""
    saved = torch.compiler.save_cache_artifacts()
    if saved is None:
        return 0
    content, _ = saved
    _get_path().write_bytes(content)
    return len(content)


class PartialCompile(Protocol):
    """The compiled side is a copy of the module that shares its state: eager's module stays unmarked."""

    def compile(self, subject: Subject) -> Function:
        forward = subject.workload.forward
        if not isinstance(forward, nn.Module):
            fix = "Give the Workload a torch.nn.Module as its forward, or remove `kind: scope`."
            raise UsageError("a function has no parts to compile", fix)
        part = get_setting(self.case, "part", Part)
        names = [choose_hottest(subject)] if part is Part.HOTTEST else list_blocks(forward)
        module = _copy_around(forward, names, with_blocks=part is Part.REGIONS)
        blocks = {name: module.get_submodule(name) for name in names}
        whole = make_function(module, subject.workload.loss, self.case.task)
        if part is Part.REGIONS:
            mark_regions(list(blocks.values()))
            return compile_function(whole, self.case)
        for name, block in blocks.items():
            compiled = cast("nn.Module", compile_function(block, self.case))  # of a module it is one
            module.set_submodule(name, compiled)
        return whole


def _copy_around(forward: nn.Module, names: Collection[str], *, with_blocks: bool) -> nn.Module:
    """Copy what is around these blocks, or the blocks as well; all else is shared, and what those hold."""
    parts = list(forward.named_modules(remove_duplicate=False))
    copied = {
        id(part)
        for name, part in parts
        if not name or (with_blocks and name in names) or any(inner.startswith(f"{name}.") for inner in names)
    }
    held = ((name, value) for _, part in parts for name, value in vars(part).items())
    state = [value for name, value in held if name != "_modules" and isinstance(value, _STATE)]
    shared = [*state, *list_held(forward), *(part for _, part in parts if id(part) not in copied)]
    return copy.deepcopy(forward, {id(value): value for value in shared})


def list_blocks(module: nn.Module) -> list[str]:
    """List the names of the repeated blocks: what the module's outermost lists hold.

    Raises:
        UsageError: It has no list of modules.
    """
    if names := list(_walk_blocks(module)):
        return names
    fix = "Hold them in a torch.nn.ModuleList or torch.nn.Sequential, or compile another `part`."
    raise UsageError("the model has no list of blocks", fix)


def mark_regions(blocks: list[nn.Module]) -> None:
    """Let the compiler compile the code of each class of blocks once.

    Each class gets a marked subclass, since eager has the class itself. The forward of a block alone cannot
    be marked: torch 2.13 takes such functions for one, and all blocks compute with the first one's weights.
    """
    marked: dict[type[nn.Module], type[nn.Module]] = {}
    for block in blocks:
        plain = type(block)
        if plain not in marked:
            region = torch.compiler.nested_compile_region(plain.forward)
            marked[plain] = type(plain.__name__, (plain,), {"forward": region})
        block.__class__ = marked[plain]


def choose_hottest(subject: Subject) -> str:
    with FlopCounterMode(display=False) as counter:
        subject.function(*subject.workload.inputs, **subject.workload.kwargs)
    counts = {
        name.partition(".")[2]: sum(flops.values()) for name, flops in counter.get_flop_counts().items()
    }
    forward = subject.workload.forward
    modules = forward.named_modules() if isinstance(forward, nn.Module) else ()
    parts = [name for name, module in modules if name and counts.get(name) and not list(_walk_blocks(module))]
    if not parts:
        fix = "Compile another `part`, or the whole model."
        raise UsageError("no submodule has products, convolutions or attention of its own", fix)
    hottest: str = max(parts, key=lambda name: counts[name])
    return hottest


def _walk_blocks(module: nn.Module, prefix: str = "") -> Iterator[str]:
    for name, child in module.named_children():
        if isinstance(child, (nn.ModuleList, nn.Sequential)):
            yield from (f"{prefix}{name}.{inner}" for inner, _ in child.named_children())
        else:
            yield from _walk_blocks(child, f"{prefix}{name}.")
