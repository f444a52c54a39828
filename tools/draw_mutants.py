"""Draw small changes of the product's code, which tests should notice: what changes, where, and to what."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
# Annotations and decorators compute nothing; texts are for people, and golden files hold them.
_SKIPPED_FIELDS = {"annotation", "returns", "type_params", "decorator_list", "bases"}
_SKIPPED_KEYWORDS = {"frozen", "slots", "kw_only", "order", "eq", "repr", "encoding"}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One change: the bytes from ``begin`` to ``end`` of a file are ``new`` instead of ``old``."""

    file: str  # relative to the repository
    line: int
    last: int  # line of the statement
    kind: str
    source: str  # the line, stripped: what it is known by where lines move
    old: str
    new: str
    begin: int
    end: int
    function: str  # the outermost function that does it when called; '' for what importing does
    function_line: int  # its first, with its decorators

    def apply(self, text: bytes) -> bytes:
        """Make the changed text of the file."""
        return text[: self.begin] + self.new.encode() + text[self.end :]


def draw_mutants(root: Path, room: str, count: int, seed: int) -> list[Mutant]:
    """Draw up to ``count`` places of ``gate/ROOM``, and one of the changes that each allows."""
    folder = root / "gate" / room
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    groups = [group for path in files for group in list_mutants(path, root)]
    generator = random.Random(seed)  # noqa: S311 - repeatable, not secret
    return [generator.choice(group) for group in generator.sample(groups, min(count, len(groups)))]


def list_mutants(path: Path, root: Path) -> list[list[Mutant]]:
    """List the changes of a file, those of one place together."""
    text = path.read_bytes()
    tree = ast.parse(text)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = text.decode().splitlines()
    groups, unchanged = [], ast.dump(tree)
    functions = list(_list_functions(tree.body))
    for node, statement in _walk(tree):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        function, function_line = next(
            ((name, first) for name, first, body in functions if node.lineno in body), ("", 0)
        )
        group = [
            Mutant(
                file=str(path.relative_to(root)),
                line=node.lineno,
                last=_find_last_line(statement),
                kind=kind,
                source=lines[node.lineno - 1].strip(),
                old=text[begin:end].decode(),
                new=new,
                begin=begin,
                end=end,
                function=function,
                function_line=function_line,
            )
            for kind, new in _list_changes(node, statement)
        ]
        groups.append([mutant for mutant in group if _is_change(mutant, text, unchanged)])
    return [group for group in groups if group]


def _list_functions(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[tuple[str, int, range]]:
    """Yield the outermost functions and the methods: their qualified names, first lines and bodies' lines."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _list_functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min(line.lineno for line in (node, *node.decorator_list))
            lines = range(node.body[0].lineno, (node.end_lineno or 0) + 1)
            yield prefix + node.name, first, lines


def _is_change(mutant: Mutant, text: bytes, unchanged: str) -> bool:
    try:
        return ast.dump(ast.parse(mutant.apply(text))) != unchanged
    except SyntaxError:
        return False


def _find_last_line(statement: ast.stmt) -> int:
    """The last line of a statement; of one with a body the line before that, unless a call runs the body."""
    body = None if isinstance(statement, ast.FunctionDef) else getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno
    return max(statement.lineno, last or 0)


_Node = ast.expr | ast.stmt


def _walk(tree: ast.Module) -> Iterator[tuple[_Node, ast.stmt]]:
    """Yield what may be changed, with the statement that it is in."""
    waiting: list[tuple[ast.AST, ast.stmt | None]] = [(tree, None)]
    while waiting:
        node, statement = waiting.pop()
        statement = node if isinstance(node, ast.stmt) else statement
        if isinstance(node, ast.expr | ast.stmt) and statement is not None:
            yield node, statement
        for name, value in ast.iter_fields(node):
            if name not in _SKIPPED_FIELDS:
                children = value if isinstance(value, list) else [value]
                waiting += [(child, statement) for child in children if _may_change(child)]


def _may_change(node: object) -> bool:
    if isinstance(node, ast.keyword) and node.arg in _SKIPPED_KEYWORDS:
        return False
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return False  # a docstring
    return isinstance(node, ast.AST) and not isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr)


def _list_changes(node: _Node, statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield kinds of changes of a node, and what stands in its place then."""
    if isinstance(node, ast.stmt):
        if _is_removable(node):
            yield "removed", "pass"
        return
    is_test = isinstance(statement, ast.If | ast.While) and node is statement.test
    negated = [("negated", ast.UnaryOp(ast.Not(), node))] if is_test else []
    for kind, new in (*negated, *_list_expressions(node)):
        text = ast.unparse(ast.fix_missing_locations(new))
        yield kind, text if isinstance(new, ast.Constant) else f"({text})"


def _is_removable(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Continue() | ast.Break() | ast.AugAssign():
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
    return False


def _list_expressions(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Compare(ops=operators):
            for position, operator in enumerate(operators):
                for other in _COMPARISONS[type(operator)]:
                    changed = copy.deepcopy(node)
                    changed.ops[position] = other()
                    yield "comparison", changed
        case ast.BoolOp(op=op, values=values):
            yield "and/or", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
            for position in range(len(values)):
                left = [*values[:position], *values[position + 1 :]]
                yield "dropped operand", ast.BoolOp(op, left) if len(left) > 1 else left[0]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "dropped not", operand
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield "negated", ast.IfExp(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.BinOp() | ast.Call() | ast.Constant():
            yield from _list_values(node)


def _list_values(node: ast.BinOp | ast.Call | ast.Constant) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.BinOp(left=left, op=op, right=right) if not any(map(_is_text, (left, right))):
            if other_op := _OPERATORS.get(type(op)):
                yield "operator", ast.BinOp(left, other_op(), right)
        case ast.Call(func=ast.Name(id=name), args=[_, *_]) if name in _CALLS:
            keywords = [keyword for keyword in node.keywords if name != "sorted"]
            yield "function", ast.Call(ast.Name(_CALLS[name], ast.Load()), node.args, keywords)
        case ast.Constant(value=bool(value)):
            yield "truth", ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield from (("number", ast.Constant(value + step)) for step in (1, -1))
        case ast.Constant(value=float(value)):
            yield from (("number", ast.Constant(value * factor or factor)) for factor in (2.0, 0.5))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def filter_lines(mutants: Sequence[Mutant], changed: dict[str, set[int]]) -> list[Mutant]:
    """Keep the mutants of lines that changed, by file."""
    return [mutant for mutant in mutants if mutant.line in changed.get(mutant.file, ())]
