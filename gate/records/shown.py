"""What of a verdict leaves the machine that measured: enumerations, numbers and checked patterns.

The file is untrusted, and a job with a token reads it. No field can hold a sentence: any text but a case
id, place, commit or environment id is refused.
"""

import re
from dataclasses import dataclass, field
from itertools import starmap
from typing import Annotated

from gate.records.bounds import SHA, CaseId, EnvironmentId, Natural, NotNegative, Pattern
from gate.records.facts import CAUSE_CODES, FAILURE_CODES, REMARK_CODES, Fact, OneOf
from gate.records.protocol import Stage, WorkerRole
from gate.records.run import BASE_ARM, CANDIDATE_ARM, CaseFailure
from gate.records.verdict import Cause, Comparison, MachineShift, Outcome, Tally

PLACE = r"(?:[A-Za-z0-9_]{1,60}/){0,9}[A-Za-z0-9_]{1,60}\.py:[0-9]{1,6}"  # a line of a Python file
# Which names a fact may have, and what each can be.
WORDLESS = {"location": PLACE, "role": "|".join(WorkerRole), "why": "|".join(FAILURE_CODES), "commit": SHA}
UNKNOWN_STAGE = "unknown"

BaseSha = Annotated[str, Pattern(regex=f"({SHA})?", what="a whole commit id")]
# What an upgrade may name: any other name could be a sentence, and is counted.
UPGRADABLE = (
    "torch", "python", "driver", "triton", "CUDA", "accelerate", "diffusers", "einops", "flash-attn",
    "huggingface-hub", "numpy", "nvidia-cublas", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "onnx", "peft",
    "safetensors", "setuptools", "sympy", "timm", "tokenizers", "torchao", "torchaudio", "torchvision",
    "transformers", "xformers",
)  # fmt: skip
PartName = Annotated[str, Pattern(regex="|".join(UPGRADABLE), what="a part of a stack that has a name here")]
# A release with its suffix of a candidate or nightly, and with its kind of build.
VERSION = (
    r"([0-9]{1,5}(\.[0-9]{1,5}){1,3}((a|b|rc)[0-9]{1,2})?(\.post[0-9]{1,2})?(\.dev[0-9]{1,8})?"
    r"(\+(cpu|xpu|cu[0-9]{2,4}|rocm[0-9]{1,2}(\.[0-9]{1,2}){0,2}))?)?"
)
Version = Annotated[str, Pattern(regex=VERSION, what="a version")]
ArmName = Annotated[str, Pattern(regex=f"{BASE_ARM}|{CANDIDATE_ARM}", what="an arm")]
StageName = Annotated[str, Pattern(regex="|".join((*Stage, UNKNOWN_STAGE)), what="a stage of a worker")]
Nothing = Annotated[str, Pattern(regex="", what="no text")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wordless(OneOf):
    """A fact without words: of the names that it could have only those of :data:`WORDLESS`."""

    def holds(self, fact: Fact) -> bool:
        # Its row or cause has the case.
        return all(starmap(_is_wordless, fact.names.items())) and not fact.cases and OneOf.holds(self, fact)


def _is_wordless(name: str, words: tuple[str, ...]) -> bool:
    match words:
        case (word,):
            return name in WORDLESS and re.fullmatch(WORDLESS[name], word) is not None
    return False


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownRow(Comparison):
    """A comparison without words."""

    case_id: CaseId
    remarks: tuple[Annotated[Fact, Wordless(codes=REMARK_CODES)], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownCause(Cause):
    """A cause without words; of a graph break it has the line."""

    case_id: CaseId
    fact: Annotated[Fact, Wordless(codes=CAUSE_CODES)]


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownFailure(CaseFailure):
    """A failure without words: neither its message nor its log."""

    case_id: CaseId
    stage: StageName
    fact: Annotated[Fact, Wordless(codes=FAILURE_CODES)]
    arm: ArmName = CANDIDATE_ARM
    log_tail: Nothing = ""
    log: Nothing = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownBase:
    """What the pairs were compared with; without a commit where none holds all of it."""

    commit: BaseSha = ""
    other_stack: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class StackPart:
    """What both stacks have of one thing that can be upgraded; ``""`` where one has none of it."""

    name: PartName
    base: Version
    head: Version


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """A verdict without words. ``environments`` are the machine's ids, with forked workers and without."""

    outcome: Outcome
    cases: tuple[CaseId, ...]
    comparisons: tuple[ShownRow, ...]
    failures: tuple[ShownFailure, ...] = ()
    causes: tuple[ShownCause, ...] = ()
    machine: MachineShift
    environments: tuple[EnvironmentId, ...]
    baseline_environments: tuple[EnvironmentId, ...] = ()
    is_target: bool = False  # compiled for a GPU that is not there
    base: ShownBase | None = None
    stack: tuple[StackPart, ...] = ()  # torch of both, and what else differs
    more_upgraded: Natural = 0  # packages whose name or version cannot be shown
    tally: Tally = field(default_factory=Tally)
    trials: Natural = 0
    wall_s: NotNegative = 0.0
    toolchain_s: NotNegative = 0.0
    overhead_s: float = 0.0
