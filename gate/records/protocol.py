"""What the lab asks of a worker process and what the worker leaves on disk; torch-free.

A trial is two fresh processes on one private cache directory: ``cold`` finds it empty and times the first
compiled call, then the warm rounds; ``warm`` finds it full and measures warm compile time, peak memory,
Python calls and drift. Of the other roles, ``prime`` pays for the toolchain once a run (ISA probe,
precompiled headers); ``rounds`` times the warm rounds of a further pair, on caches in any state;
``import`` imports the factories of a plan; ``try`` builds a case and calls it eagerly; ``trace`` compiles
it while torch writes down what it does.

The workers of a pair take turns, each by a socket of its own (``channel``), one word a line, some with
JSON:

- ``loaded``: the case is built, and what no cache holds yet was compiled where nobody times it. The answer is
  ``go``; until then both arms work at the same time.
- ``ready`` with an :class:`Offer`. The answer is ``rounds`` with a :class:`RoundPlan`: what both run at
  most.
- ``turn``, before each block and once more after the last, with the seconds that the last block takes
  undisturbed (0.0: no call of it was). The answer is ``go``, or ``go keep`` if the next block is this arm's
  as well, or ``stop``, which ends the rounds.
- ``turn`` of ``warm``, after its compile and memory, after its calls and after its drift: each arm has a turn
  of its own for the first and for the last. Both count calls at the same time, with a thread each.

A worker's threads sleep before it sends a word, but for a ``turn`` after ``go keep``. It rewrites its
result file atomically after every stage: a crash loses one, and the last ``stage`` in the file is where it
happened.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar

from gate.records.bounds import Count, NotNegative, Seconds
from gate.records.cases import Case
from gate.records.facts import Fact
from gate.records.run import Environment, FailureKind, Measured

# The interpreter's arguments before the request's path. -P: the directory that the worker runs in must
# not shadow installed modules.
WORKER_ARGUMENTS = ("-P", "-m", "gate.worker.worker")

# Python that is run as an extension is built, by setuptools, Hatch, PDM and Poetry: no import shows that.
BUILD_SCRIPTS = frozenset({"setup.py", "hatch_build.py", "pdm_build.py", "build.py"})

MIN_SUPER_BLOCKS = 3  # fewer leave a median at the mercy of one disturbance
OPTIONS_FILE = "options.json"  # what the primer leaves in Inductor's cache directory: torch.compile's options
_NO_ROUNDS_S = 1e-9  # no super-block fits
BLOCKS_PER_ARM = 4  # of a super-block: two of eager's, two of compiled's
LOADED = "loaded"  # built, and compiled where nobody times it
KEEP = "keep"  # of ``go``: the next block is this arm's as well


class WorkerRole(StrEnum):
    PRIME = "prime"
    COLD = "cold"
    WARM = "warm"
    ROUNDS = "rounds"
    IMPORT = "import"
    TRY = "try"
    TRACE = "trace"


class Stage(StrEnum):
    """In the order in which they can occur."""

    SERVER = "server"  # importing what the case's workers need, once: see gate.files.messages
    START = "start"  # interpreter and pytest start-up: the tool's own overhead
    IMPORT = "import"  # torch, Inductor, the factory's module
    BUILD = "build"  # the factory, moving to device and dtype
    EAGER = "eager"  # first eager calls
    COMPILE = "compile"  # first compiled call
    EVIDENCE = "evidence"  # reading what the compiler left, to explain a change
    WARMUP = "warmup"
    ROUNDS = "rounds"  # pytest-benchmark's timed rounds
    TURN = "turn"  # waiting while the other arm of a pair is at work
    CANARY = "canary"
    PROFILE = "profile"  # operations, launches and kernels of a call, energy, single calls
    MEMORY = "memory"
    CALLS = "calls"  # compile under a call counter
    DRIFT = "drift"
    TRACE = "trace"  # of torch, on request: a process of its own, when all is measured
    ENDED = "ended"  # measured; what was imported on the way is still to be looked at
    DONE = "done"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How much a trial samples.

    The defaults suit most machines. Runs that sampled differently are not joined.
    """

    max_block_calls: ClassVar[int] = 1000
    min_warmup_calls: ClassVar[int] = 5

    super_blocks: Count = 15
    block_s: Seconds = 0.010
    warmup_s: NotNegative = 0.2
    max_rounds_s: Seconds = 20.0
    drift_seeds: Count = 2

    def shorten(self) -> "Sampling":
        """As few blocks as a trial or pair may have: what is exact does not get more so by sampling."""
        return replace(self, super_blocks=MIN_SUPER_BLOCKS, max_rounds_s=_NO_ROUNDS_S)


def compute_super_blocks(super_block_s: float, sampling: Sampling) -> int:
    """So many of ``super_block_s`` seconds fit into ``sampling.max_rounds_s``."""
    fitting = int(sampling.max_rounds_s / super_block_s) if super_block_s > 0 else sampling.super_blocks
    return min(sampling.super_blocks, max(MIN_SUPER_BLOCKS, fitting))


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkouts:
    """The top directories of head's checkout and of the base's, which lie beside each other."""

    head: str
    base: str
    changed: tuple[str, ...] = ()  # Python files that differ or are new in head, relative to its top


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkingTree:
    """The checkout that is measured as it lies there, when the run began."""

    top: str
    newest_ns: int  # when the newest of its Python files was written, by the clock of its file system


# The directories that a compile fills; they are read when they are used.
CACHE_VARIABLES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH")
# What importing torch does not read: with others alike, arms share what they import.
ARM_VARIABLES = (*CACHE_VARIABLES, "TORCH_EXTENSIONS_DIR")


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerRequest:
    """One worker process. Caches and environment variables are set by the process that starts it."""

    role: WorkerRole
    case: Case | None  # None for ``prime`` and ``import``
    device: str  # its kind, or one of several: "cuda:1"
    threads: int  # intra-op threads
    directory: str  # measured code is imported from here
    checkout: str = ""  # another checkout than ``origin``: see ``records.Arm``
    origin: str = ""
    models: str = ""
    checkouts: Checkouts | None = None  # whose files are compared, as far as head's worker imports them
    tree: WorkingTree | None = None  # where it is measured, and git knows it
    parent: int = 0  # process without which the worker must not live on; 0: none
    skips_calls: bool = False  # warm only: calls of a compile are not counted
    warms_up: bool = True  # prime only: false where nothing is left to compile
    is_forked: bool = False  # from a server; a first compile then takes a few percent more CPU time
    result: str  # path of the WorkerResult to write
    benchmark_json: str = ""  # path for pytest-benchmark's native JSON; cold only
    sampling: Sampling = field(default_factory=Sampling)
    factories: tuple[str, ...] = ()  # import only
    options: Mapping[str, str] = field(default_factory=dict)  # torch.compile's, to be set first: JSON by name
    builds: tuple[Case, ...] = ()  # import only: without memory if there are factories, else in earnest
    caches: Mapping[str, str] = field(default_factory=dict)  # what CACHE_VARIABLES stay, whatever code sets
    channel: int = -1  # descriptor of the socket to the lab; -1 outside a pair


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerFailure:
    """What went wrong inside the worker; a crash leaves none, only the last stage."""

    kind: FailureKind
    fact: Fact
    traceback: str = ""  # of the measured code: the gate's own frames are in the log
    fix: str = ""  # what the gate's own error advises, or what gives a primer what it lacks


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerResult(Measured):
    """What one worker process measured so far."""

    role: WorkerRole
    stage: Stage
    sources: Mapping[str, str] = field(default_factory=dict)  # of kernels, by their hash in the identity
    environment: Environment | None = None
    failure: WorkerFailure | None = None
    # By factory, or by the id of a case that could not be built; import only.
    unimportable: Mapping[str, WorkerFailure] = field(default_factory=dict)


class Side(StrEnum):
    """Which of the two programs a block runs; they share inputs and parameters."""

    EAGER = "eager"
    COMPILED = "compiled"


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockSize:
    """How many calls a block of one side has: timed ones, and untimed ones that lead it in."""

    timed: int
    led: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """What an arm would run by its own clock: its blocks, and the seconds of one super-block."""

    super_block_s: float
    sizes: Mapping[Side, BlockSize]


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundPlan:
    """What both arms run: at most so many super-blocks, of the same blocks."""

    super_blocks: int
    sizes: Mapping[Side, BlockSize]


def agree_on_sizes(first: Offer, second: Offer) -> dict[Side, BlockSize]:
    """Both arms' blocks get the longer one's calls.

    What a block's first calls find in the caches depends on its length: an arm that was disturbed as it sized
    its blocks would be compared by shorter ones.
    """
    pairs = {side: (first.sizes[side], second.sizes[side]) for side in Side}
    return {
        side: BlockSize(timed=max(size.timed for size in sizes), led=max(size.led for size in sizes))
        for side, sizes in pairs.items()
    }
