"""The configuration in force as a ``gate.yml``, with the origin of each value in a comment."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from gate.files.codec import encode
from gate.files.entry import VERSION
from gate.files.yaml_out import write_scalar
from gate.metrics import SPECS, Family
from gate.project.config import _KEYS, Config
from gate.records.bounds import write_percent
from gate.records.cases import Override, Threshold

_COMMENT_COLUMN = 44
# Where the default is not the same for everybody.
_DEFAULTS = {"fail_on": "default: inconclusive; in the action: regression"}


def render_config(config: Config) -> str:
    return "\n".join([_render_line(f"version: {VERSION}", ""), *_render_keys(config)]) + "\n"


def _render_keys(config: Config) -> Iterator[str]:
    for key, value in _collect_values(config).items():
        if isinstance(value, Mapping):
            yield f"{key}:"
            for name, item in value.items():
                yield _render_line(f"  {name}: {write_scalar(item)}", _name_origin(config, f"{key}.{name}"))
        elif isinstance(value, list) and value:
            yield _render_line(f"{key}:", _name_origin(config, key))
            for index, item in enumerate(value):
                yield _render_line(f"  - {write_scalar(item)}", _name_origin(config, f"{key}[{index}]"))
        else:
            yield _render_line(f"{key}: {write_scalar(value)}", _name_origin(config, key))


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
    rendered: dict[str, object] = {}
    if parts.relative is not None and family is not Family.LOG2:
        rendered["relative"] = write_percent(parts.relative) or parts.relative
    if parts.absolute is not None:
        rendered["absolute"] = parts.absolute
    return rendered


def _to_text(path: Path, directory: Path) -> str:
    return str(path.relative_to(directory) if path.is_relative_to(directory) else path)


def _name_origin(config: Config, key: str) -> str:
    inner = (origin for path, origin in config.origins.items() if path.startswith((f"{key}.", f"{key}[")))
    return config.origins.get(key) or next(inner, _DEFAULTS.get(key, "default"))


def _render_line(text: str, origin: str) -> str:
    return f"{text:<{_COMMENT_COLUMN}} # {origin}" if origin else text
