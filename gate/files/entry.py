"""The base of the records that people write as YAML, and the texts of their keys.

.. code:: python

    class GateFile(Entry):
        trials: Count = 1
        \"\"\"How many trials each case gets. More of them see smaller changes.

        Example: 3
        \"\"\"

The text below a field says what its key is for; the example is what may stand behind the key, as YAML on
one line. Errors show the example, the JSON Schemas carry both for editors, and docs/configuration.md is
made of them.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import typing
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import pairwise
from typing import Any, cast

from gate.files.misfits import Misfit
from gate.records.bounds import Fraction, write_percent

_EXAMPLE = "Example:"


class Entry:
    """A record that people write; every field has a text."""

    __slots__ = ()

    @staticmethod
    def find_contradictions(values: Mapping[str, Any], wrong: Collection[str]) -> Iterator[Misfit]:
        """Find what does not fit together among the values of keys that are right by themselves."""
        del values, wrong
        return iter(())


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyDoc:
    """The text of a key, on one line, and an example of its value as YAML."""

    text: str
    example: str


def read_docs(entry_type: type[Entry]) -> Mapping[str, KeyDoc]:
    """Read the texts of an entry's keys from its source."""
    return _read_docs(cast("Hashable", entry_type))


@cache
def _read_docs(entry_type: Any) -> Mapping[str, KeyDoc]:  # noqa: ANN401 - a class, which mypy takes for unhashable
    try:
        (node,) = ast.parse(inspect.getsource(entry_type)).body
    except OSError:
        return {}  # installed without its source: errors say less
    return dict(_list_docs(node.body)) if isinstance(node, ast.ClassDef) else {}


def _list_docs(body: list[ast.stmt]) -> Iterator[tuple[str, KeyDoc]]:
    for field, below in pairwise(body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            text, _, example = inspect.cleandoc(str(below.value.value)).rpartition(_EXAMPLE)
            yield field.target.id, KeyDoc(text=" ".join(text.split()), example=example.strip())


def advise_key(entry_type: type[Entry], name: str) -> str:
    """Say how a key may be written: ``Write, for example, `trials: 3`; the default is 1.``."""
    doc = read_docs(entry_type).get(name)
    if doc is None:
        return ""
    default = render_default(entry_type, name)
    told = f"; the default is {default}." if default else "."
    return f"Write, for example, `{name}: {doc.example}`{told}"


def render_default(entry_type: type[Entry], name: str) -> str:
    """Render the default of a key that is a single value; empty for others."""
    (field,) = (field for field in dataclasses.fields(entry_type) if field.name == name)  # type: ignore[arg-type] # all entries are dataclasses
    default = field.default.value if isinstance(field.default, Enum) else field.default
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, float):
        notations = typing.get_args(typing.get_type_hints(entry_type, include_extras=True)[name])[1:]
        is_fraction = any(isinstance(one, Fraction) for one in notations)
        return write_percent(default) if is_fraction else f"{default:g}"
    return str(default) if isinstance(default, (int, str)) else ""
