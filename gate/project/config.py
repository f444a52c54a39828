"""``gate.yml`` -> Config, with the origin of every value."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from gate.decide.conclude.exit_codes import FailOn
from gate.decide.constants import MIN_PAIRS
from gate.devices import find_kind
from gate.errors import FileError, UsageError, join_errors
from gate.files.codec import encode
from gate.files.disk import is_present
from gate.files.entry import VERSION
from gate.files.schema import get_example, list_invalid
from gate.files.structure import decode
from gate.files.untrusted import InvalidValue
from gate.files.yaml_in import find_above, load_yaml
from gate.files.yaml_out import write_scalar
from gate.metrics import SPECS, Family
from gate.project.entries import GateFile
from gate.project.model_entries import ModelEntry, TestEntry
from gate.records.bounds import write_percent
from gate.records.cases import AbsoluteLimit, Case, Metric, Override, Quarantine, Threshold
from gate.records.protocol import Sampling

DEFAULT_FILE = "gate.yml"
_MISNAMED_FILE = "gate.yaml"
_TOP_MARK = ".git"
LIMIT_KEYS = ("trial_timeout_s", "budget_s", "pair_budget_s")  # their defaults follow device and cases


def find_config() -> Path | None:
    """Find the nearest ``gate.yml``: here, or above as far as the top of the repository.

    The path is relative; outside of repositories the root of the file system is the top. A link that
    leads nowhere is found, and reading it is an error.

    Raises:
        FileError: There is a ``gate.yaml`` in its place, or whether there is one cannot be told: a directory
            on the way may not be looked into.
    """
    here = Path.cwd()
    for place in (here, *here.parents):
        path = Path(os.path.relpath(place, here))
        if is_present(path / DEFAULT_FILE):
            return path / DEFAULT_FILE
        if is_present(path / _MISNAMED_FILE):
            problem = f"is not read: the file is called {DEFAULT_FILE}"
            raise FileError(str(path / _MISNAMED_FILE), "", problem, "Rename it, or name it with --config.")
        if is_present(path / _TOP_MARK):
            return None
    return None


_COMMENT_COLUMN = 44
# Where the default is not the same for everybody.
_DEFAULTS = {"fail_on": "default: inconclusive; in the action: regression"}
_SHORT_SHA = 7  # digits by which git names a commit
_KEYS = tuple(key.name for key in fields(GateFile) if key.name != "version")


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """The configuration in force. Keys mean what they mean in ``gate.yml``; paths are resolved.

    ``origins`` maps a key path (``sampling.block_s``, ``models[0]``) to where it was set: ``gate.yml:12``, or
    an option of the command line, ``--out``. A key that is not there has its default.
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
        """Say where a key or its nearest ancestor was set: ``gate.yml:12``, an option, or the file."""
        return find_above(key, self.origins) or self.label

    @property
    def label(self) -> str:
        """The file's name, and the commit that it was taken from."""
        return f"{self.source}{name_base(self.commit)}" if self.commit else self.source

    def is_option(self, key: str) -> bool:
        """Whether an option said what a key is."""
        return self.origins.get(key) == name_option(key)


def name_base(commit: str) -> str:
    """Write behind the name of a file that it is the base commit's, and not the one that lies there."""
    return f" of the base commit {commit[:_SHORT_SHA]}"


def load_config(path: Path | str | None) -> Config:
    """Load ``gate.yml``. Without a path, or an empty one, the nearest; where there is none, the defaults.

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
    """Make the configuration without a ``gate.yml``: its models are the reference models."""
    return replace(make_config(GateFile(version=VERSION)), is_found=False)


def make_config(file: GateFile, directory: Path = Path()) -> Config:
    """Make the configuration of a parsed ``gate.yml`` that lies in ``directory``."""
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
            AbsoluteLimit(case=one.case, metric=one.metric, value=one.at_least or one.at_most or 0.0)
            for one in file.limits
        ),
    }
    kept = {name: getattr(file, name) for name in _KEYS}
    return Config(**{**kept, **derived}, directory=directory)


def apply_options(config: Config, **options: Any) -> Config:  # noqa: ANN401 -- checked as gate.yml's keys are
    """Replace keys by what options of the command line say; None leaves a key as it is.

    Values are as those of ``gate.yml``, and checked as they are; paths are relative to the current directory.

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
    own = find_kind(config.device).limits
    chosen: dict[str, Any] = {
        key: own.get(key, defaults[key].default) for key in LIMIT_KEYS if key not in config.origins
    }
    return replace(config, **chosen)


# A trial is two processes, and expected_s an estimate: who takes four times a whole trial has hung.
HUNG_TRIALS = 4
_ARMS = 2


def fit_limits(config: Config, cases: Sequence[Case]) -> Config:
    """Raise the limits that are not set to what the slowest of ``cases`` needs to be settled.

    The defaults are those of small cases: one of ten minutes would be ended as hung, and get neither a
    second trial nor the pairs without which nothing is confirmed.
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
    """Refuse results among baselines: what one run writes over must not lie where the other is kept.

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
    """Name the option that stands for a key: ``--lock-timeout`` for ``lock_timeout_s``."""
    return "--" + key.removesuffix("_s").replace("_", "-")


def render_config(config: Config) -> str:
    """Render the configuration as a ``gate.yml`` with the origin of each value beside it."""
    return "\n".join([_render_line(f"version: {VERSION}", ""), *_render_keys(config)]) + "\n"


def _render_keys(config: Config) -> Iterator[str]:
    for key, value in _collect_values(config).items():
        if isinstance(value, Mapping):
            yield f"{key}:"
            for name, item in value.items():
                yield _render_line(f"  {name}: {write_scalar(item)}", _find_origin(config, f"{key}.{name}"))
        elif isinstance(value, list) and value:
            yield _render_line(f"{key}:", _find_origin(config, key))
            for index, item in enumerate(value):
                yield _render_line(f"  - {write_scalar(item)}", _find_origin(config, f"{key}[{index}]"))
        else:
            yield _render_line(f"{key}: {write_scalar(value)}", _find_origin(config, key))


def _collect_values(config: Config) -> dict[str, object]:
    rendered: dict[str, object] = {
        "select": config.select or None,
        "baselines": _to_text(config.baselines, config.directory),
        "out": _to_text(config.out, config.directory),
        "history": _to_text(config.history, config.directory) if config.history else None,
        "registry": [_to_text(path, config.directory) for path in config.registry],
        "error_budget": write_percent(config.error_budget) or config.error_budget,
        "thresholds": {
            metric.value: _render_parts(threshold, SPECS[metric].family)
            for metric, threshold in config.thresholds.items()
            if SPECS[metric].family is not Family.EXACT
        },
        "overrides": [
            {"case": item.case, "metric": item.metric.value, **_render_parts(item), "reason": item.reason}
            for item in config.overrides
        ],
        "limits": [
            {
                "metric": item.metric.value,
                "case": item.case,
                "at_least" if SPECS[item.metric].higher_is_better else "at_most": item.value,
            }
            for item in config.limits
        ],
    }
    return {name: rendered[name] if name in rendered else encode(getattr(config, name)) for name in _KEYS}


def _render_parts(parts: Threshold | Override, family: Family | None = None) -> dict[str, object]:
    """Render the parts that there are, and that the family looks at, as gate.yml would hold them."""
    rendered: dict[str, object] = {}
    if parts.relative is not None and family is not Family.LOG2:
        rendered["relative"] = write_percent(parts.relative) or parts.relative
    if parts.absolute is not None:
        rendered["absolute"] = parts.absolute
    return rendered


def _to_text(path: Path, directory: Path) -> str:
    return str(path.relative_to(directory) if path.is_relative_to(directory) else path)


def _find_origin(config: Config, key: str) -> str:
    """Find where a key was set; the default of a part that its parent leaves out is the default."""
    inner = (place for path, place in config.origins.items() if path.startswith((f"{key}.", f"{key}[")))
    return config.origins.get(key) or next(inner, _DEFAULTS.get(key, "default"))


def _render_line(text: str, origin: str) -> str:
    return f"{text:<{_COMMENT_COLUMN}} # {origin}" if origin else text
