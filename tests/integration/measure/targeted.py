"""``python targeted.py TARGET NAME...``: compile small programs for a target, and print the counts.

One process for all of them, and a cache for each: most of a worker's time is importing.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gate.measure.device.imitation import imitate_gpu

ROWS, COLUMNS = 512, 512  # few enough columns for a row to be reduced at once


def main(target: str, *names: str) -> None:
    """Compile the programs called ``names``; print the counts as a line of JSON, by name.

    A program that cannot be compiled has the error's type. Python calls are counted of the first alone.
    """
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # as in a worker: other processes know no target
    imitate_gpu(target)
    from gate.measure.device.target_device import TargetDevice  # noqa: PLC0415 - torch

    device = TargetDevice(target)
    sys.stdout.write(
        json.dumps({name: _measure(device, name, counts=name == names[0]) for name in names}) + "\n"
    )


def _measure(device: Any, name: str, *, counts: bool) -> dict[str, Any]:
    import torch  # noqa: PLC0415 - see main

    from gate.measure.context import WorkerContext  # noqa: PLC0415 - torch
    from gate.measure.logbook import Logbook  # noqa: PLC0415 - torch
    from gate.measure.target import compile_target, measure_target  # noqa: PLC0415 - torch
    from gate.records.cases import Case, Task  # noqa: PLC0415
    from gate.records.protocol import Sampling, WorkerRole  # noqa: PLC0415
    from gate.workload import Workload  # noqa: PLC0415

    forward, task, options = _list_programs()[name]
    torch.compiler.reset()
    logbook = Logbook(None, WorkerRole.COLD)
    case = Case(id=name, model=name, factory="", task=Task(task), options=options)
    context = WorkerContext(case=case, device=device, sampling=Sampling(), logbook=logbook, directory="")
    inputs = (torch.zeros(ROWS, COLUMNS), torch.zeros(ROWS, COLUMNS))
    loss = (lambda output: output.sum()) if task == "training" else None
    with tempfile.TemporaryDirectory() as directory:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(directory, "inductor"))
        os.environ["TRITON_CACHE_DIR"] = str(Path(directory, "triton"))
        workload = Workload(forward=forward, inputs=inputs, loss=loss)
        try:
            if counts:
                measure_target(context, workload)
            else:
                with compile_target(context, workload):
                    pass
        except Exception as error:  # noqa: BLE001 - whatever stops the compiler
            return {"error": type(error).__name__}
    result = logbook.result
    samples = {str(metric): values[0] for metric, values in result.samples.items()}
    return {**samples, "digest": result.identity.digest, "kernels": dict(result.identity.kernels)}


def _list_programs() -> dict[str, tuple[Callable[..., Any], str, dict[str, Any]]]:
    """The programs, by name: what is compiled, the task, and Inductor's options."""
    import torch  # noqa: PLC0415 - see main

    def make_wave(factor: float, between: Callable[[Any], Any] = lambda value: value) -> Callable[..., Any]:
        def compute_wave(field: Any, before: Any) -> Any:
            field = between(torch.relu(field) * factor + before)
            return torch.sigmoid(field - before).sum(-1)

        return compute_wave

    def break_graph(value: Any) -> Any:
        torch._dynamo.graph_break()
        return value

    def read_value(value: Any) -> Any:
        return value + 1 if value.max() > 0 else value

    # A scan over rows is a kernel of its own next to sums over columns.
    def part_kernels(value: Any) -> Any:
        return torch.cumsum(value, 0)

    return {
        "plain": (make_wave(1.5), "inference", {}),
        "training": (make_wave(1.5), "training", {}),
        "constant": (make_wave(1.25), "inference", {}),
        "break": (make_wave(1.5, break_graph), "inference", {}),
        "unfused": (make_wave(1.5, part_kernels), "inference", {}),
        "tile": (make_wave(1.5), "inference", {"triton.persistent_reductions": False}),
        "value": (make_wave(1.5, read_value), "inference", {}),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
