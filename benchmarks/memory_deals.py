"""Whether new memory within a process varies a call's time as a new process does.

    python benchmarks/memory_deals.py tag:smoke [--groups 8] [--processes 3] [--deals 3] [--rounds 24]

A group is some processes that are alive at once, each with the case's model built anew several times: a deal
has parameters, buffers and inputs of its own, and code that was loaded once a process. Blocks of all deals of
all processes take turns, so that the machine's wandering meets each alike. For each case and side it prints
the standard deviation of ln(seconds a call) that lies between processes, between deals of one process, and
within a deal (what its blocks leave in its median), and the p of nothing between
processes beyond their deals. Where deals vary as processes do, several in one process would spare processes;
where they do not, nothing is gained by them.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import torch
from scipy import stats

from gate.measure.device.cpu import CpuDevice
from gate.measure.turns import await_idle_threads
from gate.measure.workload.build import build_workload, compile_function, make_step, make_subject
from gate.project.config import apply_options, load_config
from gate.project.registry import load_cases
from gate.project.selection import choose_cases
from gate.records.cases import Case
from gate.records.protocol import Side

BLOCK_S = 0.01  # as a pair on a processor has them
LEAD_CALLS = 2  # before each block, untimed: the last block was another deal's
CACHE_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"

Times = dict[Side, list[list[list[float]]]]  # seconds a call: by process, by deal, by round


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Standard deviations of one side, of logarithms, and the p of no difference between processes."""

    processes: float
    deals: float
    within: float
    places: float  # the most that first, second and further deals differ by, over all processes
    p: float


def main() -> None:
    """Measure each case, and print its rows."""
    options = parse_options()
    config = load_config(None)
    chosen = choose_cases(apply_options(config, select=options.cases), load_cases(config)).cases
    print("| case | side | between processes | between deals | within a deal | first to last deal | p |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for case in chosen:
        with tempfile.TemporaryDirectory() as cache:
            os.environ[CACHE_VARIABLE] = cache
            measure_group(case, config.threads, options, processes=1)  # fills the cache
            groups = [
                measure_group(case, config.threads, options, options.processes) for _ in range(options.groups)
            ]
        for side in Side:
            parts = split_variance([group[side] for group in groups])
            cells = " | ".join(
                f"{variance:.2%}" for variance in (parts.processes, parts.deals, parts.within, parts.places)
            )
            print(f"| {case.id} | {side.name.lower()} | {cells} | {parts.p:.3f} |", flush=True)


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", help="a selection, as of `compile-gate check --select`")
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--processes", type=int, default=3, help="of a group")
    parser.add_argument("--deals", type=int, default=3, help="of a process")
    parser.add_argument("--rounds", type=int, default=24, help="blocks of each deal and side; even")
    return parser.parse_args()


def measure_group(case: Case, threads: int, options: argparse.Namespace, processes: int) -> Times:
    """Measure blocks of every deal of some processes in turn; each round begins with another."""
    context = get_context("spawn")
    with ExitStack() as stack:
        ends: list[Any] = []
        for _ in range(processes):
            ours, theirs = context.Pipe()
            child = context.Process(target=serve, args=(theirs, case, threads, options.deals))
            child.start()
            stack.callback(child.join)
            stack.callback(ours.send, None)
            ends.append(ours)
        for end in ends:
            end.recv()  # ready
        places = [(process, deal) for process in range(processes) for deal in range(options.deals)]
        times: Times = {side: [[[] for _ in range(options.deals)] for _ in ends] for side in Side}
        for index in range(options.rounds):
            first = index % len(places)
            for process, deal in [*places[first:], *places[:first]]:
                for side in Side:
                    ends[process].send((side, deal))
                    times[side][process][deal].append(ends[process].recv())
        sys.stderr.write(f"{case.id}: {processes} processes\n")
    return times


def serve(end: Connection, case: Case, threads: int, deals: int) -> None:
    """Build the deals of one process, and time a block of one whenever that is asked for."""
    torch.set_num_threads(threads)
    CpuDevice().keep_freed_memory()  # as a worker does
    with torch.set_grad_enabled(case.task == "training"):
        dealt = [deal(case) for _ in range(deals)]
        calls = {
            side: max(1, round(BLOCK_S / min(time_calls(steps[side], 4) for steps in dealt))) for side in Side
        }
        await_idle_threads()
        end.send(None)
        while request := end.recv():
            side, index = request
            step = dealt[index][side]
            time_calls(step, LEAD_CALLS)
            took_s = time_calls(step, calls[side])
            await_idle_threads()
            end.send(took_s)


def deal(case: Case) -> dict[Side, Callable[[], object]]:
    """Build the workload anew, and compile it; what was compiled before is used again."""
    subject = make_subject(build_workload(case), case, CpuDevice())
    steps = {
        Side.EAGER: make_step(subject, subject.function),
        Side.COMPILED: make_step(subject, compile_function(subject.function, case)),
    }
    for step in steps.values():
        time_calls(step, 8)  # compiles, and warms up
    return steps


def time_calls(step: Callable[[], object], calls: int) -> float:
    """Time some calls; seconds each."""
    begun = time.perf_counter()
    for _ in range(calls):
        step()
    return (time.perf_counter() - begun) / calls


def split_variance(groups: Sequence[Sequence[Sequence[Sequence[float]]]]) -> Shares:
    """Split the variance of ln(seconds) of one side, by the mean squares of a nested design.

    What a deal's median varies by itself is taken from the halves of its blocks, even and odd ones; what the
    first deals of all processes have in common, and the second ones, is taken out.
    """
    within = [
        (median_log(blocks[::2]) - median_log(blocks[1::2])) ** 2 / 4
        for group in groups
        for process in group
        for blocks in process
    ]
    medians = [[[median_log(blocks) for blocks in process] for process in group] for group in groups]
    every = [process for group in medians for process in group]
    places = [statistics.fmean(of_place) for of_place in zip(*every, strict=True)]
    left = [
        [[value - mean for value, mean in zip(process, places, strict=True)] for process in group]
        for group in medians
    ]
    number, of_group = len(places), len(left[0])
    freedom = (len(left) * (of_group - 1), (len(every) - 1) * (number - 1))
    squares = sum(
        (value - statistics.fmean(process)) ** 2 for group in left for process in group for value in process
    )
    of_deals = squares / freedom[1]
    of_processes = number * statistics.fmean(
        statistics.variance(statistics.fmean(process) for process in group) for group in left
    )
    noise = statistics.fmean(within)
    return Shares(
        processes=math.sqrt(max(0.0, (of_processes - of_deals) / number)),
        deals=math.sqrt(max(0.0, of_deals - noise)),
        within=math.sqrt(noise),
        places=max(places) - min(places),
        p=float(stats.f.sf(of_processes / of_deals, *freedom)),
    )


def median_log(blocks: Sequence[float]) -> float:
    """The logarithm of the median block."""
    return math.log(statistics.median(blocks))


if __name__ == "__main__":
    main()
