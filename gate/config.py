"""``gate.yml`` -> Config, with the origin of every value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gate.codec import decode, encode
from gate.entries import VERSION, GateFile, ModelEntry, QuarantineEntry, TestEntry
from gate.errors import FileError, UsageError
from gate.metrics import SPECS
from gate.protocol import Sampling
from gate.records import Acceptance, Metric, Override, Policy, Quarantine, Threshold
from gate.yaml_border import load_yaml
from gate.yaml_text import render_value

DEFAULT_FILE = "gate.yml"
_COMMENT_COLUMN = 44


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """The configuration in force. Keys mean what they mean in ``gate.yml``; paths are resolved.

    ``origins`` maps a key path (``sampling.block_s``, ``models[0]``) to where it was set:
    ``gate.yml:12``, or an option; a key that is not there has its default.
    """

    device: str
    threads: int
    select: str
    baselines: Path
    out: Path
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
    quarantine: tuple[Quarantine, ...]
    directory: Path = Path()  # of gate.yml: where measured code is imported from
    commit: str = ""  # that all of this was taken from; empty where it was taken from the working tree
    source: str = field(default=DEFAULT_FILE, compare=False)
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)


def load_config(path: Path | None) -> Config:
    """Load ``gate.yml``. Without a path, the one in the current directory, or the defaults.

    Raises:
        FileError: It does not exist, is not YAML or holds a wrong key or value.
    """
    if path is None and not Path(DEFAULT_FILE).exists():
        return make_config(GateFile(version=VERSION))
    source = path or Path(DEFAULT_FILE)
    file, document = load_yaml(GateFile, source)
    config = replace(
        make_config(file, source.parent),
        source=str(source),
        origins={key: f"{source}:{line}" for key, line in document.lines.items()},
    )
    _check_trials(config)
    return config


def make_config(file: GateFile, directory: Path = Path()) -> Config:
    """Make the configuration of a parsed ``gate.yml`` that lies in ``directory``."""
    thresholds = {metric: spec.threshold for metric, spec in SPECS.items()}
    for metric, entry in file.thresholds.items():
        parts = {name: value for name, value in encode(entry).items() if value is not None}
        thresholds[metric] = replace(thresholds[metric], **parts)
    overrides = tuple(
        Override(
            case=entry.case,
            metric=entry.metric,
            threshold=Threshold(relative=entry.relative, absolute=entry.absolute),
            reason=entry.reason,
        )
        for entry in file.overrides
    )
    derived: dict[str, Any] = {
        "baselines": directory / file.baselines,
        "out": directory / file.out,
        "registry": tuple(directory / name for name in file.registry),
        "sampling": Sampling(**encode(file.sampling)),
        "thresholds": thresholds,
        "overrides": overrides,
        "quarantine": tuple(map(_make_quarantine, file.quarantine)),
    }
    kept = {name: getattr(file, name) for name in GateFile.__dataclass_fields__ if name != "version"}
    return Config(**{**kept, **derived}, directory=directory)


def _make_quarantine(entry: QuarantineEntry) -> Quarantine:
    return Quarantine(**{**encode(entry), "metric": entry.metric})


def apply_options(config: Config, **options: Any) -> Config:  # noqa: ANN401 -- checked as gate.yml's keys are
    """Replace keys by what options of the command line say; None leaves a key as it is.

    Values are checked as those of ``gate.yml`` are; paths are relative to the current directory.

    Raises:
        UsageError: A value does not fit.
    """
    given = {name: value for name, value in options.items() if value is not None}
    try:
        file = decode(GateFile, {"version": VERSION, **encode_options(given)}, "the options")
    except FileError as error:
        option = "--" + error.key.replace("_", "-")
        raise UsageError(f"{option}: {error.problem}", error.fix) from None
    checked = make_config(file)
    origins = {**config.origins, **{name: "--" + name.replace("_", "-") for name in given}}
    changed = replace(config, **{name: getattr(checked, name) for name in given}, origins=origins)
    return _raise_max_trials(changed)


def encode_options(given: Mapping[str, object]) -> dict[str, object]:
    """Encode option values as ``gate.yml`` would hold them."""
    return {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}


def _raise_max_trials(config: Config) -> Config:
    """Asking for more trials than the most that suspects get is not an error on the command line."""
    return replace(config, max_trials=max(config.trials, config.max_trials))


def _check_trials(config: Config) -> None:
    if config.max_trials < config.trials:
        where = config.origins.get("max_trials") or config.origins.get("trials", config.source)
        problem = f"is {config.max_trials}, fewer than the {config.trials} trials that every case gets"
        raise FileError(where, "max_trials", problem, "Raise max_trials, or lower trials.")


def make_policy(config: Config, acceptances: tuple[Acceptance, ...], today: str) -> Policy:
    """Make what decides besides the data; ``today`` is an ISO date."""
    return Policy(
        thresholds=config.thresholds,
        overrides=config.overrides,
        acceptances=acceptances,
        quarantine=config.quarantine,
        today=today,
        error_budget=config.error_budget,
    )


def render_config(config: Config) -> str:
    """Render the configuration as a ``gate.yml`` with the origin of each value beside it."""
    return "\n".join([_render_line(f"version: {VERSION}", ""), *_render_keys(config)]) + "\n"


def _render_keys(config: Config) -> Iterator[str]:
    for key, value in _collect_values(config).items():
        if isinstance(value, Mapping):
            yield f"{key}:"
            for name, item in value.items():
                yield _render_line(f"  {name}: {render_value(item)}", _find_origin(config, f"{key}.{name}"))
        elif isinstance(value, list) and value:
            yield _render_line(f"{key}:", _find_origin(config, key))
            for index, item in enumerate(value):
                yield _render_line(f"  - {render_value(item)}", _find_origin(config, f"{key}[{index}]"))
        else:
            yield _render_line(f"{key}: {render_value(value)}", _find_origin(config, key))


def _collect_values(config: Config) -> dict[str, object]:
    """Collect plain values, key by key in the order of gate.yml."""
    plain: dict[str, object] = {
        name: encode(getattr(config, name)) for name in Config.__dataclass_fields__ if name not in _DERIVED
    }
    plain["baselines"] = _to_text(config.baselines, config.directory)
    plain["out"] = _to_text(config.out, config.directory)
    plain["registry"] = [_to_text(path, config.directory) for path in config.registry]
    plain["overrides"] = [
        {"case": item.case, "metric": item.metric.value, **encode(item.threshold), "reason": item.reason}
        for item in config.overrides
    ]
    return {name: plain[name] for name in Config.__dataclass_fields__ if name in plain}


_DERIVED = {"baselines", "out", "registry", "overrides", "directory", "commit", "source", "origins"}


def _to_text(path: Path, directory: Path) -> str:
    return str(path.relative_to(directory) if path.is_relative_to(directory) else path)


def _find_origin(config: Config, key: str) -> str:
    """Find where a key was set; the default of a part that its parent leaves out is the default."""
    inner = [path for path in config.origins if path.startswith((f"{key}.", f"{key}["))]
    return config.origins.get(key) or next((config.origins[path] for path in inner), "default")


def _render_line(text: str, origin: str) -> str:
    return f"{text:<{_COMMENT_COLUMN}} # {origin}" if origin else text
