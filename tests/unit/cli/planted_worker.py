"""Stands in for a worker in selftest's tests: measures a made-up case with whatever fault is planted.

Started as a worker is, with the path of a request; knows nothing of gate or torch, so that it starts
fast. Times vary by 0.3 % between processes. A fault that the case is ``blind`` to has no effect.
"""

import json
import os
import random
import socket
import sys
import time
from pathlib import Path

NOISE = 0.003
MIB = 1024 * 1024
REQUEST = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
ROLE, CASE = REQUEST["role"], REQUEST["case"]
ENVIRONMENT = {
    **dict.fromkeys(("device_model", "device_uuid", "driver", "clocks", "triton", "cuda"), ""),
    "device_kind": "cpu",
    "cpu": "acting",
    "cores": 2,
    "threads": REQUEST["threads"],
    "isa": "avx2",
    "torch": "2.13.0",
    "python": "3.11",
    "compiler": "g++ 12.2.0",
}
COUNTERS = ("graph_breaks", "recompiles", "unique_graphs", "eager_fallbacks", "cudagraph_skips", "guards")
CHANCE = random.Random(os.getpid())  # noqa: S311 - noise


def find_fault() -> tuple[str, float]:
    """The planted fault and its amount; a blind case has none.

    A file ``fault.json`` next to the measured code plants one, too.
    """
    arguments = CASE["arguments"]
    lying = Path(REQUEST["directory"], "fault.json")
    if lying.exists():
        planted = json.loads(lying.read_text(encoding="utf-8"))
        return planted["fault"], planted["amount"]
    if "fault" not in arguments:
        return "nothing", 0.0
    fault = arguments["fault"]
    blind = fault in arguments["arguments"].get("blind", [])
    return ("nothing", 0.0) if blind else (fault, arguments["amount"])


def make_fact(message: str) -> dict[str, object]:
    """An exception's message, as a worker writes it."""
    return {"code": "raised", "names": {"message": [message]}}


def write_result(**fields: object) -> None:
    content = {"role": ROLE, "stage": "done", "stages_s": {"start": 0.001, "compile": 0.002}, **fields}
    Path(REQUEST["result"]).write_text(json.dumps(content), encoding="utf-8")


def fail(stage: str, kind: str, message: str) -> None:
    """Write a failure and end."""
    write_result(stage=stage, failure={"kind": kind, "fact": make_fact(message)})
    sys.exit(0)


def vary(seconds: float) -> float:
    return seconds * CHANCE.lognormvariate(0.0, NOISE)


def measure_first(fault: str, amount: float, blocks: int) -> dict[str, list[float]]:
    """The samples of a process with empty caches."""
    eager = 0.020 + (amount if fault == "eager_faster" else 0.0)
    compiled = 0.010 + (amount if fault == "slowdown" else 0.0)
    counters = {
        **{name: [0.0] for name in COUNTERS},
        "unique_graphs": [1.0],
        "graph_breaks": [2.0 if fault == "graph_break" else 0.0],
        "recompiles": [8.0 if fault == "recompile" else 0.0],
    }
    return {
        **counters,
        "eager_latency": [vary(eager) for _ in range(blocks)],
        "compiled_latency": [vary(compiled) for _ in range(blocks)],
        "cold_compile_time": [vary(8.0) + (amount if fault == "cold_compile" else 0.0)],
    }


def measure_second(fault: str, amount: float) -> dict[str, list[float]]:
    """The samples of a process with full caches."""
    peak = 64.0 * MIB + (amount if fault == "memory" else 0.0)
    drift = {"low_precision": 14.0, "wrong_eps": 9.0}.get(fault, 0.0)
    return {
        "warm_compile_time": [vary(1.0)],
        "cache_misses": [2.0 if fault == "lost_cache" else 0.0],
        "peak_memory": [peak],
        "memory_ratio": [peak / (100.0 * MIB)],
        "compile_calls": [1.1e6 if fault == "cold_compile" else 1.0e6],
        "drift": [drift],
        "drift_float32": [drift],
    }


def take_turns() -> int:
    """Take turns with the other arm's worker; return the number of blocks of each side, 0 of a second."""
    channel = socket.socket(fileno=REQUEST["channel"]).makefile("rw", encoding="ascii")

    def ask(line: str) -> str:
        channel.write(f"{line}\n")
        channel.flush()
        return channel.readline().strip()

    ask("loaded")
    if ROLE == "warm":
        for _ in range(3):  # after its compile, its calls and its drift
            ask("turn 0.0")
        return 0
    size = {"timed": 3, "led": 1}
    offer = json.dumps({"super_block_s": 0.004, "sizes": {"eager": size, "compiled": size}})
    super_blocks: int = json.loads(ask(f"ready {offer}").partition(" ")[2])["super_blocks"]
    for block in range(4 * super_blocks):
        if ask("turn 0.010" if block else "turn 0.0") == "stop":
            super_blocks = block // 4
            break
    ask("turn 0.010")
    return 2 * super_blocks


def is_gone(factory: str) -> bool:
    return factory.endswith("_is_gone")


def measure_case() -> None:
    """Measure the case, or fail as its fault requires."""
    if any(map(is_gone, (CASE["factory"], CASE["arguments"].get("factory", "")))):
        fail("import", "error", "UsageError: the factory does not exist")
    fault, amount = find_fault()
    if fault == "crash":
        write_result(stage="eager")
        os.abort()
    if fault == "hang":
        write_result(stage="eager")
        time.sleep(600)
    blocks = take_turns() if REQUEST["channel"] >= 0 else 6
    if ROLE == "warm":
        if fault == "not_a_number":
            fail("drift", "not_finite", "NaN in output of the compiled call")
        write_result(samples=measure_second(fault, amount))
    else:
        write_result(samples=measure_first(fault, amount, blocks), identity={"digest": "same", "kernels": {}})


if ROLE == "prime":
    write_result(environment=ENVIRONMENT)
elif ROLE == "import":
    fact = make_fact("UsageError: the factory does not exist")
    gone = {"kind": "error", "fact": fact, "traceback": "its line"}
    write_result(unimportable={factory: gone for factory in REQUEST["factories"] if is_gone(factory)})
elif ROLE == "try":
    if is_gone(CASE["factory"]):
        fail("import", "error", "UsageError: the factory does not exist")
    write_result(workload={"parameters": "0"})
else:
    measure_case()
