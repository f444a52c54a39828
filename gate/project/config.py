"""``gate.yml`` -> Config, with the origin of every value."""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from gate.decide.conclude.exit_codes import FailOn
from gate.decide.constants import MIN_PAIRS
from gate.devices import get_kind
from gate.errors import FileError, UsageError, join_errors
from gate.files.disk import is_present
from gate.files.entry import VERSION
from gate.files.invalid import InvalidValue
from gate.files.schema import get_example, list_invalid
from gate.files.structure import decode
from gate.files.yaml_in import find_above, load_yaml
from gate.metrics import SPECS
from gate.project.entries import GateFile
from gate.project.model_entries import ModelEntry, TestEntry
from gate.records.cases import AbsoluteLimit, Case, Metric, Override, Quarantine, Threshold
from gate.records.protocol import Sampling

DEFAULT_FILE = "gate.yml"
_MISNAMED_FILE = "gate.yaml"
_TOP_MARK = ".git"
LIMIT_KEYS = ("trial_timeout_s", "budget_s", "pair_budget_s")  # their defaults follow device and cases
_SHORT_SHA = 7  # digits by which git names a commit
_KEYS = tuple(key.name for key in fields(GateFile) if key.name != "version")
# A trial is two processes, and expected_s an estimate: who takes four times a whole trial has hung.
HUNG_TRIALS = 4
_ARMS = 2


def find_config() -> Path | None:
    """Find the nearest ``gate.yml``, as a relative path: here, or above up to the top of the repository.

    A link that leads nowhere is found, and reading it is an error.

    Raises:
        FileError: There is a ``gate.yaml`` in its place, or a directory on the way may not be looked into.
    """
    here = Path.cwd()
    for directory in (here, *here.parents):
        path = Path(os.path.relpath(directory, here))
        if is_present(path / DEFAULT_FILE):
            return path / DEFAULT_FILE
        if is_present(path / _MISNAMED_FILE):
            problem = f"is not read: the file is called {DEFAULT_FILE}"
            raise FileError(str(path / _MISNAMED_FILE), "", problem, "Rename it, or name it with --config.")
        if is_present(path / _TOP_MARK):
            return None
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """The configuration in force. Keys mean what they mean in ``gate.yml``; paths are resolved.

    ``origins`` maps a key path (``sampling.block_s``, ``models[0]``) to ``gate.yml:12``, or to an option,
    ``--out``. A key that is not there has its default.
    """

    device: str
    threads: int
    counts_only: bool  # no times are kept or judged
    select: str  # empty: the default, which depends on the cases; see :mod:`gate.project.registry`
    fail_on: FailOn | None  # None: whatever is usual for who asks
    status: str  # of commits; empty: none
    baselines: Path
    out: Path
    history: Path | None  # where runs are recorded, a line each
    reference_models: bool
    registry: tuple[Path, ...]
    models: tuple[ModelEntry, ...]
    tests: tuple[TestEntry, ...]
    sampling: Sampling
    trials: int
    max_trials: int
    refresh_trials: int
    budget_s: float
    pair_budget_s: float
    trial_timeout_s: float
    lock_timeout_s: float
    error_budget: float
    thresholds: Mapping[Metric, Threshold]  # every metric's, defaults included
    overrides: tuple[Override, ...]
    limits: tuple[AbsoluteLimit, ...]
    quarantine: tuple[Quarantine, ...]
    directory: Path = Path()  # of gate.yml: where measured code is imported from
    commit: str = ""  # that all of this was taken from; empty where it was taken from the working tree
    is_found: bool = field(default=True, compare=False)  # false: all of this is defaults
    source: str = field(default=DEFAULT_FILE, compare=False)
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)

    def locate(self, key: str) -> str:
        """Where a key or its nearest ancestor was set: ``gate.yml:12``, an option, or the file."""
        return find_above(key, self.origins) or self.label

    @property
    def label(self) -> str:
        return f"{self.source}{describe_base_commit(self.commit)}" if self.commit else self.source

    def is_option(self, key: str) -> bool:
        return self.origins.get(key) == name_option(key)


def describe_base_commit(commit: str) -> str:
    return f" of the base commit {commit[:_SHORT_SHA]}"


def load_config(path: Path | str | None) -> Config:
    """Without a path, or an empty one, the nearest; where there is none, the defaults.

    Raises:
        FileError: It does not exist, is not YAML or holds a wrong key or value.
    """
    source = Path(path) if path else find_config()
    if source is None:
        return make_default_config()
    file, document = load_yaml(GateFile, source)
    origins = {key: f"{source}:{line}" for key, line in document.lines.items()}
    return _set_limits(replace(make_config(file, source.parent), source=str(source), origins=origins))


def make_default_config() -> Config:
    return replace(make_config(GateFile(version=VERSION)), is_found=False)


def make_config(file: GateFile, directory: Path = Path()) -> Config:
    thresholds = {metric: spec.threshold for metric, spec in SPECS.items()}
    for metric, entry in file.thresholds.items():
        parts = {name: value for name, value in asdict(entry).items() if value is not None}
        thresholds[metric] = replace(thresholds[metric], **parts)
    derived: dict[str, Any] = {
        "select": file.select or "",
        "baselines": directory / file.baselines,
        "out": directory / file.out,
        "history": directory / file.history if file.history else None,
        "registry": tuple(directory / name for name in file.registry),
        "thresholds": thresholds,
        "overrides": tuple(Override(**asdict(entry)) for entry in file.overrides),
        "limits": tuple(
            # one of the two is written, on the side on which the metric is worse
            AbsoluteLimit(case=limit.case, metric=limit.metric, value=limit.at_least or limit.at_most or 0.0)
            for limit in file.limits
        ),
    }
    kept = {name: getattr(file, name) for name in _KEYS}
    return Config(**{**kept, **derived}, directory=directory)


def apply_options(config: Config, **options: Any) -> Config:  # noqa: ANN401 -- checked as gate.yml's keys are
    """Replace keys by options of the command line; ``None`` leaves a key as it is.

    Values are checked as those of ``gate.yml``; paths are relative to the current directory.

    Raises:
        UsageError: A value does not fit, or `out` and `baselines` lie in each other.
    """
    given = {name: value for name, value in options.items() if value is not None}
    plain = {"version": VERSION, **given}
    if invalid := list_invalid(GateFile.SCHEMA, plain):
        raise join_errors(list(map(_refuse_option, invalid)))
    checked = make_config(decode(GateFile, plain, "options"))
    origins = {**config.origins, **{name: name_option(name) for name in given}}
    changed = replace(config, **{name: getattr(checked, name) for name in given}, origins=origins)
    check_places(changed)
    return _set_limits(replace(changed, max_trials=max(changed.trials, changed.max_trials)))


def _set_limits(config: Config) -> Config:
    defaults = GateFile.__dataclass_fields__
    device_limits = get_kind(config.device).limits
    chosen: dict[str, Any] = {
        key: device_limits.get(key, defaults[key].default) for key in LIMIT_KEYS if key not in config.origins
    }
    return replace(config, **chosen)


def fit_limits(config: Config, cases: Sequence[Case]) -> Config:
    """Raise the limits that are not set to what the slowest of ``cases`` needs.

    A case of ten minutes would be ended as hung, and get no pairs.
    """
    slowest_s = max((case.expected_s for case in cases), default=0.0)
    needed = {
        "trial_timeout_s": HUNG_TRIALS * slowest_s,
        "budget_s": config.trials * sum(case.expected_s for case in cases) + slowest_s,
        "pair_budget_s": _ARMS * MIN_PAIRS * slowest_s,
    }
    raised: dict[str, Any] = {
        key: max(getattr(config, key), needed_s)
        for key, needed_s in needed.items()
        if key not in config.origins
    }
    return replace(config, **raised)


def check_places(config: Config) -> None:
    """Check that results do not lie among baselines.

    Raises:
        FileError: One is the other, or lies in it.
    """
    out, baselines = config.out.resolve(), config.baselines.resolve()
    if not (out.is_relative_to(baselines) or baselines.is_relative_to(out)):
        return
    relation = "inside" if baselines in out.parents else "around"
    where = "the same directory as" if out == baselines else f"{relation} the directory of"
    problem = f"{config.out} is {where} `baselines`, {config.baselines} ({config.locate('baselines')})"
    fix = "Give `out` and `baselines` directories apart: one is written over by every run."
    raise FileError(config.locate("out"), "" if config.is_option("out") else "out", problem, fix)


def _refuse_option(invalid: InvalidValue) -> UsageError:
    option, example = name_option(invalid.key), shlex.quote(get_example(GateFile.SCHEMA, invalid.key))
    problem = invalid.problem.replace("expected", "must be", 1)
    return UsageError(f"{option} {problem}", f"Write, for example, `{option} {example}`.")


def name_option(key: str) -> str:
    """``--lock-timeout`` for ``lock_timeout_s``."""
    return "--" + key.removesuffix("_s").replace("_", "-")
