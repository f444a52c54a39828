"""Write the schemas and the generated parts of README and docs, or with ``--check`` say what is out of date.

python tools/generate_docs.py [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import partial
from pathlib import Path

import yaml
from config_reference import SECTIONS, render_keys
from file_schemas import ROOTS, WRITTEN, refresh_schema, render_schema
from registry_page import render_cases, render_modes, render_scopes, render_table
from target_sizes import DATA, read_data, render_sizes

from gate.action.inputs import INPUTS, ActionMode, Input
from gate.cli.commands import GROUPS
from gate.cli.parser import list_commands, render_exit_codes
from gate.kinds import KIND_SPECS as KINDS
from gate.kinds import Setting
from gate.metrics import SPECS, Family, MetricSpec, Role
from gate.records.cases import Metric
from gate.units import MICRO, format_threshold

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "tests" / "golden" / "report" / "side_by_side.txt"
_FIRST_FIGURES = "case  "  # ends the heads of the table of figures, which the README does without
MIB = 1024 * 1024


def describe_threshold(spec: MetricSpec) -> str:
    """Return a metric's default threshold in words."""
    if spec.role is Role.EXPLAINS:
        return "-"
    if spec.family is Family.EXACT:
        return format_threshold(spec.metric, spec.threshold)
    if spec.family is Family.LOG2:
        return f"{spec.threshold.absolute:g}"
    parts = [f"{spec.threshold.relative * 100:g} %"]
    if spec.threshold.absolute:
        absolute = spec.threshold.absolute
        if spec.unit == "bytes":
            parts.append(f"{absolute / MIB:g} MiB")
        else:
            micro = f"{absolute * 1e6:g} {MICRO}s"
            parts.append(micro if absolute < 1e-3 else f"{absolute:g} s")  # noqa: PLR2004 - a millisecond
    if spec.side_by_side != spec.threshold:
        parts[0] += f" ({spec.side_by_side.relative * 100:g} % side by side)"
    return " and ".join(parts)


def render_metric_table() -> str:
    """Return the table of metrics."""
    rows = (
        (f"`{spec.metric}`", spec.title, spec.unit, spec.scope, spec.role, describe_threshold(spec))
        for spec in SPECS.values()
    )
    return render_table(
        ("metric", "what it is", "unit", "scope", "role", "smallest change that counts"), rows
    )


def render_command_table() -> str:
    """Return the table of commands."""
    rows = []
    for title, commands in GROUPS.items():
        rows.append((f"**{title}**", ""))
        rows += [(f"`{command.name}`", command.summary) for command in list_commands(commands)]
    return render_table(("command", "does"), rows)


def render_example() -> str:
    """Return the beginning of a report that a test compares with what is rendered, up to its figures."""
    text = EXAMPLE.read_text(encoding="utf-8")
    return "\n".join(["```text", text[: text.index(_FIRST_FIGURES)].rstrip().rpartition("\n\n")[0], "```"])


def render_kind_table() -> str:
    """Return the table of kinds of cases."""
    rows = []
    for spec in KINDS.values():
        settings = "<br>".join(_describe_setting(name, setting) for name, setting in spec.settings.items())
        rows.append(
            (f"`{spec.kind}`", spec.title, settings, _list_metrics(spec.adds), _list_metrics(spec.lacks))
        )
    return render_table(("kind", "one call is", "settings", "also measured", "not measured"), rows)


def _describe_setting(name: str, setting: Setting) -> str:
    members = type(setting.default) if isinstance(setting.default, Enum) else ()
    values = f": one of {', '.join(f'`{member}`' for member in members)}" if members else ""
    default = "" if setting.default is None else f"; `{setting.default}` by default"
    return f"`{name}`: {setting.title}{values}{default}"


def _list_metrics(metrics: Iterable[Metric]) -> str:
    return ", ".join(f"`{metric}`" for metric in Metric if metric in set(metrics))


def replace_section(text: str, name: str, body: str) -> str:
    """Return ``text`` with the lines between the section's markers replaced."""
    start, end = f"<!-- generated: {name} -->\n", f"\n<!-- end: {name} -->"
    head, begins, rest = text.partition(start)
    _, ends, tail = rest.partition(end)
    if not begins or not ends:
        raise LookupError(f"there is no section {name!r}")
    return head + start + body + end + tail


def render_readme(text: str) -> str:
    """Return the README with its example and exit codes made anew."""
    text = replace_section(text, "example", render_example())
    return replace_section(text, "exit codes", f"```text\n{render_exit_codes().rstrip()}\n```")


def render_commands(text: str) -> str:
    """Return the page of commands with its table made anew."""
    return replace_section(text, "commands", render_command_table())


def render_metrics(text: str) -> str:
    """Return the page of metrics with its table made anew."""
    return replace_section(text, "metrics", render_metric_table())


def render_reference(text: str) -> str:
    """Return the reference of the configuration with the tables of all keys made anew."""
    for section in SECTIONS:
        text = replace_section(text, section, render_keys(section))
    return text


def render_kinds(text: str) -> str:
    """Return the page of kinds of case with its table made anew."""
    return replace_section(text, "kinds", render_kind_table())


def render_registry(text: str) -> str:
    """Return the page of what the reference models measured with its tables made anew."""
    text = replace_section(text, "modes", render_modes())
    text = replace_section(text, "scopes", render_scopes())
    return replace_section(text, "cases", render_cases())


def render_inputs(text: str) -> str:
    """Return the reference of the action with its table of inputs made anew."""
    described = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    rows = [
        (
            f"`{item.name}`",
            f"`{item.default}`" if item.default else "-",
            _list_modes(item),
            described[item.name]["description"],
        )
        for item in INPUTS
    ]
    return replace_section(text, "inputs", render_table(("input", "default", "used by", "is"), rows))


def _list_modes(item: Input) -> str:
    others = [mode for mode in ActionMode if mode not in item.users]
    if len(others) > 1:
        return ", ".join(item.users)
    return " but ".join(["all", *others])


def render_targets(text: str) -> str:
    """Return the page of full sizes with its table made of what was compiled."""
    return replace_section(text, "full sizes", render_sizes(read_data(DATA)))


def write_schema(name: str, text: str) -> str:
    """Return the schema of a kind of file; of one that people write only what code says is made anew."""
    return refresh_schema(name, text) if name in WRITTEN else render_schema(name)


DOCUMENTS: Mapping[str, Callable[[str], str]] = {
    # First: by them gate.yml is read, of which others are made.
    **{f"gate/schemas/{name}.json": partial(write_schema, name) for name in ROOTS},
    "README.md": render_readme,
    "docs/commands.md": render_commands,
    "docs/metrics.md": render_metrics,
    "docs/configuration.md": render_reference,
    "docs/registry.md": render_kinds,
    "docs/github-reference.md": render_inputs,
    "benchmarks/registry.md": render_registry,
    "benchmarks/target_sizes.md": render_targets,
}


def main(arguments: list[str]) -> int:
    """Write or check; return the exit code."""
    outdated = 0
    for name, render in DOCUMENTS.items():
        path = ROOT / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        wanted = render(text)
        if text == wanted:
            continue
        if "--check" in arguments:
            print(f"{name} is out of date: run `python tools/generate_docs.py`")
            outdated = 1
        else:
            path.write_text(wanted, encoding="utf-8")
    return outdated


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
