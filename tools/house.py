"""Sizes of the package, and the modules that are longer or shorter than one idea, or imported once.

``python tools/house.py [CHECKOUT]`` prints them for this checkout, or for another one to compare with.
"""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

PACKAGE = "gate"
# Lines, house rule: one idea a module. What is longer holds two, what is shorter is part of a neighbour.
LONG_FILE = 350
SHORT_FILE = 40
ROOT = Path(__file__).resolve().parents[1]
# What a command runs before it does anything; then how many modules of ours that has loaded.
COMMANDS = {
    "check --help": "from gate.__main__ import main; sys.argv = ['compile-gate', 'check', '--help']; main()",
    "check": "import gate.cli.check",
}
COUNT_LOADED = f"""
import sys, atexit
atexit.register(lambda: print("\\n", sum(name.partition(".")[0] == {PACKAGE!r} for name in sys.modules)))
"""


def read_modules(root: Path) -> dict[str, tuple[ast.Module, int]]:
    """Parse all modules: dotted name -> syntax tree and lines."""
    found = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        found[name] = (ast.parse(text), text.count("\n"))
    return found


def list_imports(tree: ast.Module, known: AbstractSet[str]) -> Iterator[str]:
    """Yield the modules of ours that a module imports, those within functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.module in known:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module


def list_with_one_importer(modules: Mapping[str, ast.Module]) -> list[str]:
    """Return the modules that exactly one other imports: each is a candidate to become part of it."""
    importers = Counter(
        imported
        for name, tree in modules.items()
        for imported in {*list_imports(tree, modules.keys())} - {name}
    )
    return sorted(name for name, times in importers.items() if times == 1)


def count_import_lines(tree: ast.Module) -> int:
    """Count the lines that import statements take."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def count_loaded(root: Path, code: str) -> int:
    """Count the modules of ours that a command loads, by running this code."""
    command = (sys.executable, "-c", COUNT_LOADED + code)
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return int(run.stdout.split()[-1])


def measure_functions(modules: Mapping[str, ast.Module]) -> list[int]:
    """Return the length of each function, in lines."""
    return [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for tree in modules.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def main(arguments: list[str]) -> int:
    """Print the sizes."""
    root = Path(arguments[0]) if arguments else ROOT
    read = read_modules(root)
    modules = {name: tree for name, (tree, _) in read.items()}
    lines = {name: count for name, (_, count) in read.items()}
    functions = measure_functions(modules)
    print(
        f"{sum(lines.values())} lines in {len(lines)} modules, median {statistics.median_low(lines.values())}"
    )
    print(f"functions: median {statistics.median_low(functions)} lines, longest {max(functions)}")
    imports = sum(map(count_import_lines, modules.values()))
    print(f"imports: {imports / sum(lines.values()):.1%} of all lines")
    for command, code in COMMANDS.items():
        print(f"modules that `{command}` loads: {count_loaded(root, code)}")
    lists = {
        f"more than {LONG_FILE} lines": [name for name, count in lines.items() if count > LONG_FILE],
        f"less than {SHORT_FILE} lines": [name for name, count in lines.items() if count < SHORT_FILE],
        "imported once": list_with_one_importer(modules),
    }
    for title, names in lists.items():
        print(f"\n{title}: {len(names)}", *names, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
