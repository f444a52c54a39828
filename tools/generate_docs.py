"""Write the generated parts of README and docs, or with ``--check`` say whether they are up to date.

python tools/generate_docs.py [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import yaml
from config_reference import ENTRIES, render_keys
from registry_page import render_cases, render_modes, render_scopes
from target_sizes import DATA, read_data, render_table

from gate.action.inputs import INPUTS, ActionMode, Input
from gate.cli.commands import GROUPS
from gate.cli.parser import list_commands, render_exit_codes
from gate.kinds import KIND_SPECS as KINDS
from gate.kinds import Setting
from gate.metrics import SPECS, Family, MetricSpec, Role
from gate.records import Metric
from gate.units import MICRO, render_threshold

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "tests" / "golden" / "report" / "side_by_side.txt"
_FIRST_FIGURES = "case  "  # ends the heads of the table of figures, which the README does without
MIB = 1024 * 1024


def describe_threshold(spec: MetricSpec) -> str:
    """Return a metric's default threshold in words."""
    if spec.role is Role.EXPLAINS:
        return "-"
    if spec.family is Family.EXACT:
        return render_threshold(spec.metric, spec.threshold)
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
    header = ("metric", "what it is", "unit", "scope", "role", "smallest change that counts")
    cells = [
        (f"`{spec.metric}`", spec.title, spec.unit, spec.scope, spec.role, describe_threshold(spec))
        for spec in SPECS.values()
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, ("---",) * len(header), *cells))


def render_command_table() -> str:
    """Return the table of commands."""
    rows = ["| command | does | example |", "|---|---|---|"]
    for title, commands in GROUPS.items():
        rows.append(f"| **{title}** | | |")
        rows += [f"| `{one.name}` | {one.summary} | `{one.example}` |" for one in list_commands(commands)]
    return "\n".join(rows)


def render_example() -> str:
    """Return the beginning of a report that a test compares with what is rendered, up to its figures."""
    text = EXAMPLE.read_text(encoding="utf-8")
    return "\n".join(["```text", text[: text.index(_FIRST_FIGURES)].rstrip().rpartition("\n\n")[0], "```"])


def render_kind_table() -> str:
    """Return the table of kinds of cases."""
    rows = ["| kind | one call is | settings | also measured | not measured |", "|---|---|---|---|---|"]
    for spec in KINDS.values():
        settings = "<br>".join(_describe_setting(name, one) for name, one in spec.settings.items())
        cells = (settings, *(_list_metrics(metrics) for metrics in (spec.adds, spec.lacks)))
        rows.append(f"| `{spec.kind}` | {spec.title} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _describe_setting(name: str, setting: Setting) -> str:
    told = ", ".join(f"`{choice}`" for choice in setting.choices)
    values = f": one of {told}" if told else ""
    default = "" if setting.is_required else f"; `{setting.default}` by default"
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
    return replace_section(text, "exit codes", _render_codes())


def _render_codes() -> str:
    return f"```text\n{render_exit_codes().rstrip()}\n```"


def render_commands(text: str) -> str:
    """Return the page of commands with its table and the exit codes made anew."""
    text = replace_section(text, "commands", render_command_table())
    return replace_section(text, "exit codes", _render_codes())


def render_metrics(text: str) -> str:
    """Return the page of metrics with its table made anew."""
    return replace_section(text, "metrics", render_metric_table())


def render_reference(text: str) -> str:
    """Return the reference of the configuration with the tables of all keys made anew."""
    for entry in ENTRIES:
        text = replace_section(text, entry.__name__, render_keys(entry))
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
    rows = ["| input | default | used by | is |", "| --- | --- | --- | --- |"]
    for item in INPUTS:
        default = f"`{item.default}`" if item.default else "-"
        rows.append(
            f"| `{item.name}` | {default} | {_list_modes(item)} | {described[item.name]['description']} |"
        )
    return replace_section(text, "inputs", "\n".join(rows))


def _list_modes(item: Input) -> str:
    others = [mode for mode in ActionMode if mode not in item.users]
    if len(others) > 1:
        return ", ".join(item.users)
    return " but ".join(["all", *others])


def render_targets(text: str) -> str:
    """Return the page of full sizes with its table made of what was compiled."""
    return replace_section(text, "full sizes", render_table(read_data(DATA)))


DOCUMENTS: Mapping[str, Callable[[str], str]] = {
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
        text = (ROOT / name).read_text(encoding="utf-8")
        wanted = render(text)
        if text == wanted:
            continue
        if "--check" in arguments:
            print(f"{name} is out of date: run `python tools/generate_docs.py`")
            outdated = 1
        else:
            (ROOT / name).write_text(wanted, encoding="utf-8")
    return outdated


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
