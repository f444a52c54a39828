"""What recording evidence costs, by CPU time, which other programs on the machine do not change.

``python benchmarks/evidence_cost.py bert/inference-float32-smoke-default --rounds 3``: in turn, fresh
processes compile the case on empty caches with ``TORCH_TRACE`` and without, as ``--trace`` does and as a
trial does. Each then reads what a trial reads in its stage ``evidence``, twenty times, and tells the median.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from gate.project.config import load_config
from gate.project.registry import load_cases

PASSES = 20
COMPILERS = 1  # threads of Inductor's, as in a trial


def main() -> None:
    """Measure each case and print a row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="+", metavar="CASE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)  # one process's share
    options = parser.parse_args()
    if options.once:
        print(json.dumps(_compile_once(options.cases[0])))
        return
    print("| case | evidence | compile | compile, traced | trace |\n| --- | --- | --- | --- | --- |")
    for case in options.cases:
        results: dict[bool, list[dict[str, float]]] = {False: [], True: []}
        for _ in range(options.rounds):
            for traced, group in results.items():
                group.append(_start(case, traced=traced))
        evidence_s = median(result["evidence_s"] for result in results[False])
        seconds = [[result["compile_s"] for result in group] for group in results.values()]
        compile_s = [f"{min(values):.2f} to {max(values):.2f} s" for values in seconds]
        size = median(result["trace_bytes"] for result in results[True])
        print(f"| {case} | {1000 * evidence_s:.1f} ms | {' | '.join(compile_s)} | {size / 1024:.0f} KiB |")


def _start(case: str, *, traced: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory:
        environment = {
            "TORCHINDUCTOR_CACHE_DIR": f"{directory}/cache",
            "TORCHINDUCTOR_COMPILE_THREADS": str(COMPILERS),
        }
        environment |= {"TORCH_TRACE": f"{directory}/trace"} if traced else {}
        command = (sys.executable, __file__, "--once", case)
        done = subprocess.run(
            command, env=os.environ | environment, check=True, capture_output=True, text=True
        )
        result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        traces = Path(directory, "trace").glob("*")
        return {**result, "trace_bytes": sum(path.stat().st_size for path in traces)}


def _compile_once(case_id: str) -> dict[str, float]:
    import torch  # noqa: PLC0415 - the processes that measure alone

    from gate.measure import graph  # noqa: PLC0415 - torch
    from gate.measure.identity import read_sources  # noqa: PLC0415 - torch
    from gate.measure.kinds.protocol import make_protocol  # noqa: PLC0415 - torch
    from gate.measure.workload.build import load_factory  # noqa: PLC0415 - torch

    torch.set_num_threads(1)
    (case,) = [case for case in load_cases(load_config(None)) if case.id == case_id]
    factory: Any = load_factory(case.factory)
    workload: Any = factory(**case.arguments)
    protocol = make_protocol(case)
    run: Any = torch.compile(workload.forward)
    graph.start_observation()
    with torch.no_grad():
        tiny: Any = torch.compile(torch.cos)
        tiny(torch.ones(8))  # pays for the toolchain, which no trial is charged for
        compile_s = _time(lambda: run(*workload.inputs, **workload.kwargs))

    def read() -> None:
        protocol.identify()
        read_sources(graph.get_cache_directory())
        graph.observe_graphs(str(Path.cwd()))

    return {"compile_s": compile_s, "evidence_s": median(_time(read) for _ in range(PASSES))}


def _time(work: Callable[[], Any]) -> float:
    """Processor seconds of this process and of the compilers that it starts."""
    before = _read_s()
    work()
    return _read_s() - before


def _read_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


if __name__ == "__main__":
    main()
