"""The ``compile_benchmark`` fixture, which measures registry models and users' own tests; needs torch."""

import copy
import importlib
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest
import torch
from pytest_benchmark.stats import Metadata, Stats

from gate.devices import TARGET
from gate.errors import UsageError
from gate.measure.compile_options import set_options
from gate.measure.context import WorkerContext, try_case
from gate.measure.device.choice import open_device
from gate.measure.device.device import Device
from gate.measure.rounds import Rounds
from gate.measure.target import measure_target
from gate.measure.toolchain import load_toolchain
from gate.measure.trial import compile_untimed, measure_again, measure_cold, measure_plain, measure_warm
from gate.measure.workload.build import SEED, TORCH_DTYPES, seed_everything
from gate.measure.workload.holding import find_held
from gate.measure.workload.tensors import iterate_tensors
from gate.records.cases import Case, DType, Task
from gate.records.protocol import WorkerRequest, WorkerRole
from gate.suite.session import TIMER, SuiteSession, tolerate_warnings
from gate.workload import Workload

# What a first compile would import otherwise: importing is not compiling.
_MODULES = ("torch._dynamo", "torch._inductor.compile_fx")
# The same, of which another torch may lack some: then its first compile imports what it has instead.
_OF_SOME = (
    "torch.utils.cpp_extension",  # with setuptools, the longest
    "torch._dynamo.backends.inductor",
    "torch._dynamo.repro.after_dynamo",
    "torch._inductor.codegen.cpp_wrapper_gpu",
    "torch._inductor.codegen.wrapper_fxir",
    "torch.export._trace",
)
# What hashes the sources of torch, and of Triton, for the keys of caches; torch 2.12 has none for Triton's.
_KEYS = (
    ("torch._inductor.codecache", "torch_key"),
    ("torch._inductor.codecache", "triton_key"),
    ("triton.runtime.cache", "triton_key"),
)
# By role; outside of a trial there is none.
_TIMED = {None: measure_plain, WorkerRole.COLD: measure_cold, WorkerRole.ROUNDS: measure_again}
_UNTIMED: Mapping[WorkerRole | None, Callable[[WorkerContext, Workload | None], None]] = {
    WorkerRole.TRY: try_case,
    WorkerRole.TRACE: compile_untimed,
    WorkerRole.WARM: measure_warm,
}


class BlockTimer:
    """Lets pytest-benchmark's ``pedantic`` time blocks, and turns its row of blocks into two of calls."""

    def __init__(
        self,
        benchmark: Any,  # noqa: ANN401 - untyped there
        rows: list[Metadata],
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        """``wait`` is called before each block, outside the timed part: in a pair, for the turn.

        It gets the seconds of the block before, undisturbed where known, and returns whether there is another
        one.
        """
        self._benchmark = benchmark
        self._rows = rows
        self._wait = wait

    def __call__(
        self, target: Callable[[], float | None], lead_in: Callable[[], None], rounds: int
    ) -> list[float]:
        """Time ``rounds`` blocks at most, each after an untimed lead-in; seconds of those that ran.

        Raises:
            RuntimeError: pytest-benchmark is switched off, so nothing was timed.
        """
        ran = 0
        undisturbed_s: float | None = None
        is_over = False

        def prepare() -> None:
            nonlocal is_over
            if self._wait and not is_over:
                last_s = self._list_durations()[-1] if ran else 0.0
                is_over = not self._wait(last_s if undisturbed_s is None else undisturbed_s)
            if not is_over:
                lead_in()

        def run() -> None:
            # ``pedantic`` cannot be ended early: what it still times once the rounds are over is nothing.
            nonlocal ran, undisturbed_s
            if not is_over:
                undisturbed_s = target()
                ran += 1

        self._benchmark.pedantic(run, setup=prepare, rounds=rounds, iterations=1)
        if self._benchmark.stats is None:
            raise RuntimeError(
                "pytest-benchmark is disabled (--benchmark-disable, or xdist): nothing was timed"
            )
        return self._list_durations()[:ran]

    def _list_durations(self) -> list[float]:
        return self._benchmark.stats.stats.data  # type: ignore[no-any-return] # untyped there

    def skip(self) -> None:
        self._benchmark.pedantic(lambda: None, rounds=1)
        if self._benchmark.stats is not None:
            self._rows.remove(self._benchmark.stats)

    def split_row(self, case_id: str, rounds: Rounds, extra: Mapping[str, object]) -> None:
        blocks = self._benchmark.stats
        self._rows.remove(blocks)
        for side, times_s in rounds.times.items():
            row = copy.copy(blocks)
            row.name, row.group, row.stats = str(side), case_id, Stats()  # type: ignore[no-untyped-call] # untyped there
            row.params = {name: _name_case(value) for name, value in (blocks.params or {}).items()} or None
            row.fullname = f"{blocks.fullname}[{side}]"
            row.extra_info = {
                **extra,
                "case_id": case_id,
                "arm": str(side),
                "calls_per_block": rounds.calls[side],
            }
            for time_s in times_s:
                row.stats.update(time_s)
            self._rows.append(row)


def _name_case(value: object) -> object:
    return value.id if isinstance(value, Case) else value


def import_compiler() -> None:
    for name in _MODULES:
        importlib.import_module(name)
    with warnings.catch_warnings(action="ignore"):  # of modules that were not asked for by name
        for name in _OF_SOME:
            with suppress(ImportError):
                importlib.import_module(name)
    _hash_sources()


def _hash_sources() -> None:
    """Let torch hash its sources, 2,400 files, and Triton's library, for the keys of its caches.

    Torch does that once a process: a second of a first compile.
    """
    for module, name in _KEYS:
        with suppress(ImportError):
            hash_sources = getattr(importlib.import_module(module), name, None)
            if callable(hash_sources):
                hash_sources()


def open_session_device(request: WorkerRequest) -> Device:
    """Open the device that a test is measured on, set threads and the timer up for it, and seed torch.

    Raises:
        MachineError: There is no such device.
    """
    import_compiler()
    torch.set_num_threads(request.threads)
    device = open_device(request.device)
    if request.role is not WorkerRole.TRY:
        load_toolchain(device)
        set_options(request.options)
    TIMER.synchronize = device.synchronize
    seed_everything(SEED)
    return device


def measure_case(
    session: SuiteSession, case: Case, workload: Workload | None, device: Device, timer: BlockTimer
) -> None:
    """Measure a case as the session's request asks; a failure is in the result file, too."""
    request = session.request
    context = WorkerContext(
        case=case,
        device=device,
        sampling=request.sampling,
        logbook=session.logbook,
        directory=request.directory,
        turns=session.turns,
        skips_calls=request.skips_calls,
        caches=request.caches,
    )
    seed_everything(SEED)
    try:
        with tolerate_warnings():
            _measure(context, workload, timer, request.role if request.case else None)
    except Exception as error:
        context.logbook.fail(error)  # now: a test that catches it goes on as if all were well
        raise
    context.logbook.leave()


def choose_dtype(workload: Workload) -> DType:
    held = find_held(workload.forward)
    parameters = list(held.parameters()) if held is not None else []
    inputs = [tensor for _, tensor in iterate_tensors((workload.inputs, workload.kwargs))]
    dtypes = {tensor.dtype for tensor in (*parameters, *inputs)}
    half = (dtype for dtype in (DType.BFLOAT16, DType.FLOAT16) if TORCH_DTYPES[dtype] in dtypes)
    return next(half, DType.FLOAT32)


def _measure(
    context: WorkerContext, workload: Workload | None, timer: BlockTimer, role: WorkerRole | None
) -> None:
    untimed = measure_target if context.device.kind is TARGET else _UNTIMED.get(role)
    if untimed:
        untimed(context, workload)
        timer.skip()
        return
    rounds, case = _TIMED[role](context, workload, timer), context.case
    extra = {"task": case.task, "dtype": case.dtype, "mode": case.mode, "device": context.device.name}
    timer.split_row(case.id, rounds, {name: str(value) for name, value in extra.items()})


class CompileBenchmark:
    def __init__(self, session: SuiteSession, request: pytest.FixtureRequest, benchmark: Any) -> None:  # noqa: ANN401 - pytest-benchmark's, untyped
        """Open the device and seed torch, so that the test builds the same weights each time."""
        session.logbook.hold_caches(session.request.caches)
        with tolerate_warnings():
            self._device = open_session_device(session.request)
        self._session = session
        self._node = request.node.nodeid
        # pytest-benchmark's list of rows has no public name.
        rows = request.config._benchmarksession.benchmarks  # type: ignore[attr-defined] # noqa: SLF001
        self._timer = BlockTimer(benchmark, rows, session.turns.wait if session.turns else None)

    def __call__(
        self,
        forward: Callable[..., Any],
        inputs: Any,  # noqa: ANN401 - any model's
        *,
        kwargs: Mapping[str, Any] | None = None,
        loss: Callable[[Any], torch.Tensor] | None = None,
        optimizer: Callable[[Any], torch.optim.Optimizer] | None = None,
    ) -> None:
        """Measure ``forward``, a module or a function, called with ``inputs``.

        Args:
            forward: It is moved to the gate's device, and a module set to ``eval()``, or to
                ``train()`` when a training step is measured.
            inputs: A tuple of arguments, or the only one.
            kwargs: Keyword arguments.
            loss: Maps the output to a scalar and makes a training step of the call.
            optimizer: Gets the parameters and returns a ``torch.optim.Optimizer``.
        """
        workload = Workload(
            forward=forward,
            inputs=inputs if isinstance(inputs, tuple) else (inputs,),
            kwargs=kwargs or {},
            loss=loss,
            optimizer=optimizer,
        )
        self.measure(self._make_case(workload), workload)

    def measure(self, case: Case, workload: Workload | None = None) -> None:
        measure_case(self._session, case, workload, self._device, self._timer)

    def _make_case(self, workload: Workload) -> Case:
        task, dtype = Task.TRAINING if workload.loss else Task.INFERENCE, choose_dtype(workload)
        if (case := self._session.request.case) is None:
            return Case(id=self._node, model=self._node, node=self._node, task=task, dtype=dtype)
        if task is not case.task is Task.INFERENCE:
            raise _refuse_default(case.model, "task", (case.task, task), ("a loss", "pass no loss"))
        if dtype is not case.dtype is DType.FLOAT32:
            words = f"tensors of {dtype}", "pass float32 alone"
            raise _refuse_default(case.model, "dtype", (case.dtype, dtype), words)
        return case


def _refuse_default(name: str, key: str, values: tuple[str, str], words: tuple[str, str]) -> UsageError:
    what = f"gate.yml: tests: {name}: {key}: the test passes {words[0]}, and its entry's {key} is {values[0]}"
    return UsageError(what, f"Write `{key}: {values[1]}` into the entry, or {words[1]}.")
