"""Stands in for a worker in the lab's tests: plays the act that the case's arguments name.

Started as a worker is, with the path of a request; knows nothing of gate or torch, so that it starts fast.
"""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

REQUEST = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
ENVIRONMENT = {
    "cpu": "acting",
    "cores": 2,
    "threads": 1,
    "isa": "avx2",
    "torch": os.environ.get("ACTING_VERSION", "2.13.0"),
    "python": "3.11",
    "compiler": "g++ 12.2.0",
    "device_kind": "cpu",
    "device_traits": {
        "capability": os.environ.get("ACTING_CAPABILITY", ""),
        "memory": os.environ.get("ACTING_MEMORY", ""),
    },
    **dict.fromkeys(("device_model", "device_uuid", "driver", "clocks", "triton", "cuda"), ""),
}
SAMPLES = {
    "prime": {},
    "try": {},
    "cold": {"cold_compile_time": [2.0], "compiled_latency": [0.010, 0.011], "cache_misses": [5.0]},
    "rounds": {"compiled_latency": [0.012, 0.013], "eager_latency": [0.02, 0.021]},
    "warm": {"warm_compile_time": [0.5], "cache_misses": [0.0], "peak_memory": [1024.0]},
}


def print_line(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def make_fact(message: str) -> dict[str, object]:
    """An exception's message, as a worker writes it."""
    return {"code": "raised", "names": {"message": [message]}}


def write_result(**fields: object) -> None:
    content = {
        "role": REQUEST["role"],
        "stage": "done",
        "stages_s": {"start": 0.001, "compile": 0.002},
        **fields,
    }
    Path(REQUEST["result"]).write_text(json.dumps(content), encoding="utf-8")


def play_ok() -> None:
    cache = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    cache.mkdir(parents=True, exist_ok=True)
    names = sorted(path.name for path in cache.iterdir())
    (cache / f"{REQUEST['role']}.txt").write_text("artefact", encoding="utf-8")
    print_line("cache holds", *names)
    if REQUEST["benchmark_json"]:
        Path(REQUEST["benchmark_json"]).write_text("{}", encoding="utf-8")
    write_result(samples=SAMPLES[REQUEST["role"]], environment=ENVIRONMENT)


def play_code(**codes: str) -> None:
    """Report the generated code, by role."""
    code = codes.get(REQUEST["role"], "")
    write_result(samples=SAMPLES[REQUEST["role"]], identity={"digest": code}, environment=ENVIRONMENT)


def play_long() -> None:
    """Report half a minute, after a second."""
    time.sleep(1.0)
    write_result(samples=SAMPLES[REQUEST["role"]], stages_s={"rounds": 30.0}, environment=ENVIRONMENT)


def play_error() -> None:
    failure = {
        "kind": "error",
        "fact": make_fact("ValueError: no\x1b[31m such\nlayer"),
        "traceback": "Traceback\n  line 3",
    }
    write_result(stage="build", failure=failure)
    sys.exit(1)


def play_segfault() -> None:
    write_result(stage="compile")
    os.kill(os.getpid(), signal.SIGSEGV)


def play_partial() -> None:
    """Crash after the first measurement."""
    first = dict(list(SAMPLES[REQUEST["role"]].items())[:1])
    write_result(stage="rounds", samples=first)
    os.kill(os.getpid(), signal.SIGSEGV)


def play_killed() -> None:
    write_result(stage="eager")
    os.kill(os.getpid(), signal.SIGKILL)


def play_again(end: Callable[[], None]) -> None:
    """Measure at the first time, and end like this at the second."""
    before = Path(os.environ["TMPDIR"], f"{REQUEST['role']}-before")
    if before.exists():
        end()
    before.touch()
    play_ok()


def play_killed_again() -> None:
    play_again(play_killed)


def play_crash_again() -> None:
    play_again(play_segfault)


def play_late_crash() -> None:
    write_result(samples=SAMPLES[REQUEST["role"]])
    os.kill(os.getpid(), signal.SIGABRT)


def play_hang() -> None:
    """Ignore SIGTERM, with one child in the group and one that left it for a session of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleeper = [
        sys.executable,
        "-c",
        "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)",
    ]
    subprocess.Popen(sleeper)
    subprocess.Popen(sleeper, start_new_session=True)
    write_result(stage="rounds")
    time.sleep(600)


def play_leave_children() -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    subprocess.Popen(sleeper)
    subprocess.Popen(sleeper, start_new_session=True)
    play_ok()


def play_truncated() -> None:
    Path(REQUEST["result"]).write_text('{"role": "cold", "stage": "do', encoding="utf-8")


def play_exit_3() -> None:
    print_line("std::bad_alloc")
    sys.exit(3)


def play_silent() -> None:
    """Exit 0 without a result."""


def play_flood() -> None:
    chunk = b"x" * 1023 + b"\n"
    for _ in range(50 * 1024):
        os.write(1, chunk)
    os.write(1, b"\x1b[31mthe last line\x1b[0m\n")
    play_ok()


def play_full_disk() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    Path(os.environ["TMPDIR"], "large").write_bytes(b"x" * 8192)
    play_ok()


def note_loading(what: str) -> None:
    with Path(os.environ["TMPDIR"], "loading.txt").open("a", encoding="ascii") as loading:
        loading.write(f"{what}\n")


def play_second(ask: Callable[[str], str], load_s: float, says: str) -> None:
    """Wait to compile, to count calls and to look at drift; fail before if it ``says`` why."""
    if says:
        write_result(stage="build", failure={"kind": "error", "fact": make_fact(says)})
        sys.exit(1)
    note_loading("builds")
    ask("loaded")
    note_loading("compiles")
    time.sleep(load_s)
    note_loading("compiled")
    ask("turn 0.0")
    note_loading("counts")
    time.sleep(load_s)
    note_loading("counted")
    ask("turn 0.0")
    note_loading("looks")
    time.sleep(load_s)
    note_loading("looked")
    ask("turn 0.0")
    write_result(samples=SAMPLES["warm"])


def play_turns(stop: int = 0, sleep_s: float = 0.0, load_s: float = 0.0, says: str = "") -> None:
    """Take turns as a real worker does; after ``stop`` blocks it crashes, or sleeps over one.

    Alone it has nobody to take turns with. A second process ``says`` why it fails next to another.
    """
    if REQUEST["channel"] < 0:
        play_ok()
        return
    channel = socket.socket(fileno=REQUEST["channel"]).makefile("rw", encoding="ascii")

    def ask(line: str) -> str:
        channel.write(f"{line}\n")
        channel.flush()
        return channel.readline().strip()

    if REQUEST["role"] == "warm":
        play_second(ask, load_s, says)
        return
    note_loading("begins")
    time.sleep(load_s)
    note_loading("ends")
    if ask("loaded") != "go":
        sys.exit(0)
    print_line("ready")
    size = {"timed": 3, "led": 1}
    offer = json.dumps({"super_block_s": 0.004, "sizes": {"eager": size, "compiled": size}})
    super_blocks = json.loads(ask(f"ready {offer}").partition(" ")[2])["super_blocks"]
    for block in range(1, 4 * super_blocks + 1):
        answer = ask("turn 0.010" if block > 1 else "turn 0.0")
        if answer == "stop":
            super_blocks = (block - 1) // 4
            break
        if answer.split()[:1] != ["go"]:
            write_result(stage="rounds", failure={"kind": "error", "fact": make_fact("the lab hung up")})
            sys.exit(0)
        with Path(os.environ["TMPDIR"], "order.txt").open("a", encoding="ascii") as order:
            order.write(f"{os.getpid()}\n")
        if block == stop:
            write_result(stage="rounds")
            time.sleep(sleep_s)
            os.kill(os.getpid(), signal.SIGSEGV)
    ask("turn 0.010")
    latencies = [0.010] * 2 * super_blocks
    samples = {"compiled_latency": latencies, "eager_latency": latencies, "cold_compile_time": [2.0]}
    write_result(samples=samples)


def play_crowd(says: str = "", ends: str = "") -> None:
    """Fail next to another worker, as a device without room for two does; alone all is well.

    It reports what it ``says``, or it ``ends`` as another act does.
    """
    if REQUEST["channel"] < 0:
        play_ok()
        return
    if ends:
        globals()[f"play_{ends}"]()
    write_result(stage="eager", failure={"kind": "error", "fact": make_fact(says)})
    sys.exit(1)


def play_close_output() -> None:
    os.close(1)
    os.close(2)
    time.sleep(0.2)
    play_ok()


def play_import() -> None:
    """Import what can be: factories that are called after an error, a crash or a hang cannot."""
    names = [factory.partition(":")[2] for factory in REQUEST["factories"]]
    if "crash" in names:
        os.kill(os.getpid(), signal.SIGSEGV)
    failure = {
        "kind": "error",
        "fact": make_fact("ValueError: no\x1b[31m such\nmodel"),
        "traceback": "Traceback\n  line 3",
    }
    failed = {factory: failure for factory in REQUEST["factories"] if factory.endswith(":error")}
    write_result(stage="done", unimportable=failed)


case = REQUEST["case"]
act = case["arguments"].get("act", "ok") if case else os.environ.get("ACTING_PRIME", "ok")
roles = case["arguments"].get("roles", ["cold", "warm"]) if case else ["prime"]
if REQUEST["role"] == "import":
    play_import()
elif not REQUEST["warms_up"]:
    play_ok()
elif act == "no_torch":
    message = "ModuleNotFoundError: No module named 'torch'"
    fix = f"Install torch for {sys.executable}."
    write_result(stage="import", failure={"kind": "error", "fact": make_fact(message), "fix": fix})
elif REQUEST["role"] in roles:
    globals()[f"play_{act}"](**(case["arguments"].get("how", {}) if case else {}))
else:
    play_ok()
