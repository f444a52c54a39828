"""Figures of the package's structure, read from its sources; what a command loads, by loading it.

    python tools/house.py [CHECKOUT]     prints them for this checkout, or for another one to compare with

A *room* is a package or module directly below ``gate``; an *arrow* is that some module of one room imports
some of another. A room's *floor* is 1 more than that of the highest room it imports.
"""

from __future__ import annotations

import ast
import graphlib
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
# Prints how many of our modules are loaded, and is followed by what loads them.
_COUNT_LOADED = f"""
import sys, atexit
atexit.register(lambda: print("loaded", sum(name.partition(".")[0] == {PACKAGE!r} for name in sys.modules)))
"""
_COMMANDS = {
    "check --help": "from gate.__main__ import main; sys.argv = ['compile-gate', 'check', '--help']; main()",
    "check": "import gate.cli.check",
}
DEVICE_KINDS = {"cpu", "cuda"}
TABLES = ("gate.metrics", "gate.devices")  # where groupings of metrics and kinds of devices belong
NONE = "none"
ROOT = Path(__file__).resolve().parents[1]

Modules = Mapping[str, ast.Module]
Graph = Mapping[str, AbstractSet[str]]


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


def make_graph(modules: Modules) -> dict[str, set[str]]:
    """Return what each module imports. A package's ``__init__`` only hands names on."""
    known = set(modules)
    return {name: set(list_imports(tree, known)) - {name} for name, tree in modules.items()}


def list_with_one_importer(graph: Graph) -> list[str]:
    """Return the modules that exactly one other imports: each is a candidate to become part of it."""
    importers = Counter(imported for modules in graph.values() for imported in modules)
    return sorted(name for name, times in importers.items() if times == 1)


def count_import_lines(tree: ast.Module) -> int:
    """Count the lines that import statements take."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def count_loaded(root: Path, code: str) -> int:
    """Run what a command runs before it does anything, and return how many of our modules that loads."""
    run = subprocess.run(
        [sys.executable, "-c", _COUNT_LOADED + code], cwd=root, capture_output=True, text=True, check=False
    )
    return int(run.stdout.rsplit("loaded", 1)[1])


def find_room(module: str) -> str:
    """``gate.lab.host.gpu`` -> ``lab``; the package itself is ``gate``."""
    return module.split(".")[1] if "." in module else PACKAGE


def join_rooms(graph: Graph) -> dict[str, set[str]]:
    """Return the arrows between rooms."""
    rooms: dict[str, set[str]] = {}
    for module, imported in graph.items():
        room = find_room(module)
        rooms.setdefault(room, set()).update(find_room(one) for one in imported)
    # The package's face is imported with whatever is in it, and it imports all that it offers.
    return {room: arrows - {room, PACKAGE} for room, arrows in rooms.items() if room != PACKAGE}


def count_floors(rooms: Graph) -> dict[str, int]:
    """Return each room's floor.

    Raises:
        graphlib.CycleError: Rooms import each other in a circle.
    """
    floors: dict[str, int] = {}
    for room in graphlib.TopologicalSorter(rooms).static_order():
        floors[room] = 1 + max((floors[one] for one in rooms.get(room, ())), default=0)
    return floors


def drop_implied(rooms: Graph) -> dict[str, set[str]]:
    """Leave out the arrows that others imply: of A -> B -> C and A -> C the last."""
    reached: dict[str, set[str]] = {}
    for room in graphlib.TopologicalSorter(rooms).static_order():
        direct = rooms.get(room, set())
        reached[room] = set(direct).union(*(reached[one] for one in direct))
    return {
        room: {one for one in direct if not any(one in reached[other] for other in direct)}
        for room, direct in rooms.items()
    }


def list_functions(tree: ast.Module) -> Iterator[int]:
    """Yield the length of each function, in lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


def list_names(tree: ast.Module) -> Iterator[str]:
    """Yield the public names that a module defines at its top: classes, functions, constants."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        else:
            names = (
                [node.target.id]
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
                else []
            )
        yield from (name for name in names if not name.startswith("_"))


def count_groupings(tree: ast.Module) -> int:
    """Count the collections at a module's top that name two metrics or more."""
    return sum(
        1
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        if len({ast.unparse(one) for one in ast.walk(node.value) if _is_metric(one)}) > 1
    )


def _is_metric(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Metric"


def count_kinds(tree: ast.Module) -> int:
    """Count the literals that name a kind of device."""
    return sum(isinstance(node, ast.Constant) and node.value in DEVICE_KINDS for node in ast.walk(tree))


def find_circle(graph: Graph) -> str:
    """Return a circle of a graph, or `none`."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return " -> ".join(reversed(error.args[1]))
    return NONE


def measure_rooms(rooms: Graph) -> dict[str, object]:
    """Return the figures of the rooms; those that need floors are left out where there is a circle."""
    figures: dict[str, object] = {
        "rooms": len(rooms),
        "arrows between rooms": sum(map(len, rooms.values())),
        "circle of rooms": (circle := find_circle(rooms)),
    }
    if circle == NONE:
        figures["floors"] = max(count_floors(rooms).values())
        figures["arrows that others do not imply"] = sum(map(len, drop_implied(rooms).values()))
    return figures


def measure_modules(modules: Modules) -> dict[str, object]:
    """Return the figures of what stands in the modules."""
    functions = [length for tree in modules.values() for length in list_functions(tree)]
    names = Counter(name for tree in modules.values() for name in set(list_names(tree)))
    shared = sorted(name for name, times in names.items() if times > 1)
    outside = [tree for name, tree in modules.items() if not name.startswith(TABLES)]
    return {
        "longest function": max(functions),
        "median function": statistics.median_low(functions),
        "groupings of metrics outside the table": sum(map(count_groupings, outside)),
        "literals of device kinds outside the table": sum(map(count_kinds, outside)),
        "names defined in two modules or more": f"{len(shared)}: {', '.join(shared)}",
    }


def main(arguments: list[str]) -> int:
    """Print the figures."""
    root = Path(arguments[0]) if arguments else ROOT
    read = read_modules(root)
    modules = {name: tree for name, (tree, _) in read.items()}
    graph = make_graph(modules)
    lines = [count for _, count in read.values()]
    imports = sum(map(count_import_lines, modules.values()))
    figures = {
        "modules": len(modules),
        "lines": sum(lines),
        "median lines of a module": statistics.median_low(lines),
        f"files of more than {LONG_FILE} lines": sum(count > LONG_FILE for count in lines),
        f"files of less than {SHORT_FILE} lines": sum(count < SHORT_FILE for count in lines),
        "modules with one importer": len(list_with_one_importer(graph)),
        "share of imports": f"{imports / sum(lines):.1%}",
        **{f"modules that {name!r} loads": count_loaded(root, code) for name, code in _COMMANDS.items()},
        "circle of modules": find_circle(graph),
        **measure_rooms(join_rooms(graph)),
        **measure_modules(modules),
    }
    for name, value in figures.items():
        print(f"{name:44} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
