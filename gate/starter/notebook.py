"""A notebook's model: what its cells define, as a module that any process can import."""

import ast
import json
from pathlib import Path

from gate.errors import FileError
from gate.files.disk import load_bytes
from gate.files.untrusted import MAX_JSON_BYTES

_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


def export_notebook(path: Path) -> str:
    """What else cells run, such as training, is left out.

    Raises:
        FileError: It is no notebook, or a cell is no Python.
    """
    parts = [f'"""What {path.name} defines: exported by `compile-gate init`, and yours from now on."""']
    try:
        for cell in json.loads(load_bytes(path, MAX_JSON_BYTES))["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] == "code" and not text.startswith("%%"):
                lines = ["" if line.startswith(("%", "!")) else line for line in text.splitlines()]
                nodes = filter(_is_definition, ast.parse("\n".join(lines)).body)
                parts += ["\n".join(lines[_compute_first_line(node) - 1 : node.end_lineno]) for node in nodes]
    except (ValueError, KeyError, TypeError, SyntaxError) as error:
        problem = f"is no notebook of Python: {error}"
        raise FileError(str(path), "", problem, "Write the model into a module, and name that.") from error
    return "\n\n".join(parts) + "\n"


def _is_definition(node: ast.stmt) -> bool:
    is_called = any(isinstance(part, ast.Call) for part in ast.walk(node))
    return isinstance(node, _DEFINITIONS) or (isinstance(node, ast.Assign) and not is_called)


def _compute_first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])
