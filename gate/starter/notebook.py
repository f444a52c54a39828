"""A notebook's model: what its cells define, as a module that any process can import."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

from gate.errors import FileError
from gate.files.disk import load_bytes
from gate.files.untrusted import MAX_JSON_BYTES

_FIX = "Write the model into a module, and name that."


def export_notebook(path: Path) -> str:
    """Export imports, functions, classes and constants. What else cells run, such as training, is left out.

    Raises:
        FileError: It is no notebook, or a cell is no Python.
    """
    try:
        cells = json.loads(load_bytes(path, MAX_JSON_BYTES))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(str(path), "", "is no notebook", _FIX) from error
    parts = [f'"""What {path.name} defines: exported by `compile-gate init`, and yours from now on."""']
    for number, source in enumerate(sources, start=1):
        lines = ["" if line.startswith(("%", "!")) else line for line in source.splitlines()]
        try:
            tree = ast.parse("" if source.startswith("%%") else "\n".join(lines))
        except SyntaxError as error:
            problem = f"code cell {number} is no Python: {error.msg}"
            raise FileError(str(path), "", problem, _FIX) from error
        parts += _list_definitions(tree, lines)
    return "\n\n".join(parts) + "\n"


def _list_definitions(tree: ast.Module, lines: list[str]) -> Iterator[str]:
    for node in tree.body:
        is_constant = isinstance(node, ast.Assign | ast.AnnAssign) and not any(
            isinstance(part, ast.Call) for part in ast.walk(node)
        )
        named = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
        if is_constant or isinstance(node, named):
            decorators = [one.lineno for one in getattr(node, "decorator_list", ())]
            yield "\n".join(lines[min([node.lineno, *decorators]) - 1 : node.end_lineno])
