"""Write the generated parts of the README, or with ``--check`` say whether they are up to date.

python tools/generate_docs.py [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path

from gate.cli.parser import list_commands, render_exit_codes
from gate.metrics import SPECS, Family, MetricSpec, Role
from gate.units import MICRO

README = Path(__file__).resolve().parent.parent / "README.md"
MIB = 1024 * 1024


def describe_threshold(spec: MetricSpec) -> str:
    """Return a metric's default threshold in the README's words."""
    if spec.role is Role.EXPLAINS:
        return "-"
    if spec.family is Family.EXACT:
        return "any change"
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
    """Return the README's table of metrics."""
    header = ("metric", "what it is", "unit", "scope", "role", "smallest change that counts")
    cells = [
        (f"`{spec.metric}`", spec.title, spec.unit, spec.scope, spec.role, describe_threshold(spec))
        for spec in SPECS.values()
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, ("---",) * len(header), *cells))


def render_command_table() -> str:
    """Return the README's table of commands."""
    rows = ["| command | does | example |", "|---|---|---|"]
    rows += [f"| `{command.name}` | {command.summary} | `{command.example}` |" for command in list_commands()]
    return "\n".join(rows)


def replace_section(text: str, name: str, body: str) -> str:
    """Return ``text`` with the lines between the section's markers replaced."""
    start, end = f"<!-- generated: {name} -->\n", f"\n<!-- end: {name} -->"
    head, _, rest = text.partition(start)
    _, _, tail = rest.partition(end)
    return head + start + body + end + tail


def render_readme(text: str) -> str:
    """Return the README with every generated section made anew."""
    text = replace_section(text, "metrics", render_metric_table())
    text = replace_section(text, "commands", render_command_table())
    return replace_section(text, "exit codes", "```text\n" + render_exit_codes().rstrip() + "\n```")


def main(arguments: list[str]) -> int:
    """Write or check; return the exit code."""
    text = README.read_text(encoding="utf-8")
    wanted = render_readme(text)
    if text == wanted:
        return 0
    if "--check" in arguments:
        print("README.md is out of date: run `python tools/generate_docs.py`")
        return 1
    README.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
