"""Sizes of the package, and what in it needs a second reading.

``python tools/house.py [CHECKOUT]`` prints them for this checkout, or for another one to compare with.
"""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

PACKAGE = "gate"
SHORT_FILE = 40  # lines; what is shorter is often part of a neighbor
MAX_COMPLEXITY = 15  # a function with more branches is a table or several steps
# Names that do not say what they hold.
VAGUE_NAMES = ("one", "found", "told", "own", "known", "place", "beside")
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
BRANCHES = ast.If | ast.IfExp | ast.For | ast.While | ast.ExceptHandler | ast.comprehension | ast.match_case
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def read_modules(root: Path) -> dict[str, tuple[ast.Module, int]]:
    """Parse all modules: dotted name -> syntax tree and lines."""
    modules = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        modules[name] = (ast.parse(text), text.count("\n"))
    return modules


def list_imports(tree: ast.Module, package: AbstractSet[str]) -> Iterator[str]:
    """Yield the modules of ours that a module imports, those within functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in package)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.module in package:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in package else node.module


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


def count_docstring_words(tree: ast.Module) -> int:
    """Count the words of all docstrings of a module."""
    documented = (node for node in ast.walk(tree) if isinstance(node, DOCUMENTED))
    return sum(len((ast.get_docstring(node) or "").split()) for node in documented)


def count_bindings(tree: ast.Module) -> Counter[str]:
    """Count how often each name is bound: assigned, looped over, or a parameter."""
    nodes = [*ast.walk(tree)]
    assigned = (node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return Counter([*assigned, *(node.arg for node in nodes if isinstance(node, ast.arg))])


def count_seams(tree: ast.Module) -> int:
    """Count the blocks of constants that stand after a module's first function."""
    is_constant = [
        isinstance(node, ast.Assign | ast.AnnAssign) and not is_alias(node)
        for node in tree.body[find_first_function(tree) :]
    ]
    return sum(
        after and not before for before, after in zip([False, *is_constant], is_constant, strict=False)
    )


def is_alias(node: ast.Assign | ast.AnnAssign) -> bool:
    """Whether the name is a type's (``Rows = Sequence[Row]``), which may need a class above it."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return isinstance(targets[0], ast.Name) and not targets[0].id.strip("_").isupper()


def find_first_function(tree: ast.Module) -> int:
    """Find the position of the first function in a module's body; its length if there is none."""
    functions = (index for index, node in enumerate(tree.body) if isinstance(node, ast.FunctionDef))
    return next(functions, len(tree.body))


def list_shared_names(modules: AbstractSet[str]) -> list[str]:
    """List the file names that stand in several packages, with these."""
    packages = defaultdict[str, list[str]](list)
    for package, _, file in (name.rpartition(".") for name in modules):
        packages[file].append(package)
    shared = {file: names for file, names in packages.items() if len(names) > 1}
    return [f"{file}: {', '.join(names)}" for file, names in sorted(shared.items())]


def list_complex_functions(modules: Mapping[str, ast.Module]) -> list[str]:
    """List the functions with more ways through than the limit."""
    return [
        f"{name}:{node.lineno} {node.name}: {complexity}"
        for name, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        if (complexity := compute_complexity(node)) > MAX_COMPLEXITY
    ]


def compute_complexity(function: ast.FunctionDef) -> int:
    """Compute one more than the branches of a function: conditions, loops, comprehensions, handlers.

    Unlike ruff's C901 it counts what a comprehension decides, which a reader has to follow, too.
    """
    branches = 0
    for node in ast.walk(function):
        branches += isinstance(node, BRANCHES)
        branches += len(node.ifs) if isinstance(node, ast.comprehension) else 0
    return 1 + branches


def main(arguments: list[str]) -> int:
    """Print the sizes."""
    root = Path(arguments[0]) if arguments else ROOT
    parsed = read_modules(root)
    modules = {name: tree for name, (tree, _) in parsed.items()}
    lines = {name: count for name, (_, count) in parsed.items()}
    functions = measure_functions(modules)
    bindings = sum(map(count_bindings, modules.values()), Counter[str]())
    seams = {name: count_seams(tree) for name, tree in modules.items()}
    imports = sum(map(count_import_lines, modules.values()))
    print(
        f"{sum(lines.values())} lines in {len(lines)} modules, median {statistics.median_low(lines.values())}"
    )
    print(f"functions: median {statistics.median_low(functions)} lines, longest {max(functions)}")
    print(f"imports: {imports / sum(lines.values()):.1%} of all lines")
    print(f"docstrings: {sum(map(count_docstring_words, modules.values()))} words")
    print("bound:", ", ".join(f"{name} {bindings[name]}" for name in VAGUE_NAMES))
    for command, code in COMMANDS.items():
        print(f"modules that `{command}` loads: {count_loaded(root, code)}")
    lists = {
        f"a complexity above {MAX_COMPLEXITY}": list_complex_functions(modules),
        "constants after functions": [f"{name}: {count}" for name, count in seams.items() if count],
        "file names in several packages": list_shared_names(modules.keys()),
        f"less than {SHORT_FILE} lines": [name for name, count in lines.items() if count < SHORT_FILE],
        "imported once": list_with_one_importer(modules),
    }
    for title, names in lists.items():
        print(f"\n{title}: {len(names)}", *names, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
