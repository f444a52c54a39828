"""The shapes of the YAML files that people write: gate.yml, registry files and accepted.yml.

Read strictly by the codec; their JSON Schemas are generated from here. What they become is in
:mod:`gate.config`, :mod:`gate.registry` and :mod:`gate.acceptances`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from gate.limits import Day, NotEmpty, Pattern, Range
from gate.protocol import Sampling
from gate.records import DEFAULT_BACKEND, DType, Metric, Mode, Task

VERSION = 1

Version = Annotated[int, Range(minimum=VERSION, maximum=VERSION)]
Seconds = Annotated[float, Range(above=0)]
Count = Annotated[int, Range(minimum=1, maximum=10_000)]
NotNegative = Annotated[float, Range(minimum=0)]
Name = Annotated[str, Pattern(regex="[a-z0-9_]+", what="a name of a-z, 0-9 and _")]
Tag = Annotated[str, Pattern(regex="[A-Za-z0-9_.-]+", what="a tag of letters, digits, _, . and -")]
Text = Annotated[str, Pattern(regex=r"[\s\S]*\S[\s\S]*", what="a text that is not empty")]
Device = Annotated[str, Pattern(regex="cpu|cuda(:[0-9]{1,2})?", what="a device: cpu, cuda or cuda:N")]
Factory = Annotated[
    str, Pattern(regex=r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", what="package.module:function")
]
Backend = Annotated[
    str, Pattern(regex="[A-Za-z0-9_][A-Za-z0-9_.-]*", what="the name of a backend of torch.compile")
]
Node = Annotated[str, Pattern(regex=r"[^:]+\.py::.+", what="a pytest node id: path/test_x.py::test_name")]
Date = Annotated[str, Day()]

Sha = Annotated[str, Pattern(regex="[0-9a-f]{40}([0-9a-f]{24})?", what="a whole commit id")]
Login = Annotated[str, Pattern(regex=r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", what="a login of GitHub")]
CaseId = Annotated[str, Pattern(regex=r"((?![*?\[])[!-~]){1,300}", what="a case id, and no pattern")]
# Neither controls nor what turns a line around or hides in it.
_UNSEEN = r"\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
Line = Annotated[
    str, Pattern(regex=rf"(?=.*\S)[^{_UNSEEN}]{{1,300}}", what="one line of 1 to 300 visible characters")
]

_SAMPLING = Sampling()


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplingEntry:
    """How much a trial samples; see :class:`gate.protocol.Sampling`."""

    super_blocks: Count = _SAMPLING.super_blocks
    block_s: Seconds = _SAMPLING.block_s
    max_block_calls: Count = _SAMPLING.max_block_calls
    warmup_s: NotNegative = _SAMPLING.warmup_s
    min_warmup_calls: Count = _SAMPLING.min_warmup_calls
    max_rounds_s: Seconds = _SAMPLING.max_rounds_s
    drift_seeds: Count = _SAMPLING.drift_seeds


@dataclass(frozen=True, kw_only=True, slots=True)
class ThresholdEntry:
    """A threshold that replaces the parts it names of a metric's default."""

    relative: NotNegative | None = None
    absolute: NotNegative | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class OverrideEntry:
    """A threshold for some cases and one metric, and why."""

    case: Text
    metric: Metric
    reason: Text
    relative: NotNegative = 0.0
    absolute: NotNegative = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class QuarantineEntry:
    """An unstable case, or one metric of it, that does not decide until a date."""

    case: Text
    metric: Metric | None = None
    owner: Text
    reason: Text
    expires: Date


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseEntry:
    """One case of a model, or one for each combination where a key holds a list."""

    size: Name | tuple[Name, ...] = "smoke"
    task: Task | tuple[Task, ...] = Task.INFERENCE
    dtype: DType | tuple[DType, ...] = DType.FLOAT32
    mode: Mode | tuple[Mode, ...] = Mode.DEFAULT
    fullgraph: bool = False
    backend: Backend | tuple[Backend, ...] = DEFAULT_BACKEND
    options: Mapping[str, object] = field(default_factory=dict)
    tags: tuple[Tag, ...] = ()
    expected_s: Seconds = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelEntry:
    """A model: who builds it, with which arguments, and the cases to make of it."""

    name: Name
    factory: Factory
    arguments: Mapping[str, object] = field(default_factory=dict)
    sizes: Mapping[Name, Mapping[str, object]] = field(default_factory=dict)
    dynamic: bool | None = None
    cases: Annotated[tuple[CaseEntry, ...], NotEmpty(what="a list of at least one case")]


@dataclass(frozen=True, kw_only=True, slots=True)
class TestEntry:
    """A user's own test that calls ``compile_benchmark``."""

    __test__ = False  # pytest must not collect it

    name: Name
    node: Node
    task: Task = Task.INFERENCE
    dtype: DType = DType.FLOAT32
    tags: tuple[Tag, ...] = ()
    expected_s: Seconds = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RegistryFile:
    """A registry file."""

    version: Version
    models: tuple[ModelEntry, ...] = ()
    tests: tuple[TestEntry, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class GateFile:
    """``gate.yml``. Paths are relative to its directory."""

    version: Version
    device: Device = "cpu"
    # Not "all cores": a thread count that differs between hosts makes their times incomparable.
    threads: Annotated[int, Range(minimum=1, maximum=1024)] = 2
    select: Text = "tag:smoke"
    baselines: Text = "baselines"
    out: Text = "out"
    reference_models: bool = True
    registry: tuple[Text, ...] = ()
    models: tuple[ModelEntry, ...] = ()
    tests: tuple[TestEntry, ...] = ()
    sampling: SamplingEntry = field(default_factory=SamplingEntry)
    trials: Count = 1
    max_trials: Count = 3
    refresh_trials: Count = 5
    budget_s: Seconds = 330.0  # the smoke selection within six minutes, with the priming before it
    pair_budget_s: Seconds = 330.0  # as much again, for what `check --base` confirms side by side
    trial_timeout_s: Seconds = 300.0
    lock_timeout_s: NotNegative = 60.0
    error_budget: Annotated[float, Range(above=0, maximum=0.5)] = 0.01
    thresholds: Mapping[Metric, ThresholdEntry] = field(default_factory=dict)
    overrides: tuple[OverrideEntry, ...] = ()
    quarantine: tuple[QuarantineEntry, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptanceEntry:
    """A known change that somebody took responsibility for, until a date."""

    case: Text
    metric: Metric
    allowance: NotNegative
    reason: Text
    author: str = ""
    expires: Date


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptedFile:
    """``baselines/accepted.yml``."""

    version: Version
    accepted: tuple[AcceptanceEntry, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovedEntry:
    """A regression of one case that is accepted for one commit."""

    case: CaseId
    metric: Metric
    allowance: NotNegative
    reason: Line
    author: Login
    expires: Date


@dataclass(frozen=True, kw_only=True, slots=True)
class WaiverEntry:
    """There was no baseline to compare with, and somebody takes that."""

    reason: Line
    author: Login
    expires: Date


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalFile:
    """``approvals/<commit>.yml`` on the branch of approvals."""

    version: Version
    commit: Sha
    accepted: tuple[ApprovedEntry, ...] = ()
    first_baselines: WaiverEntry | None = None
