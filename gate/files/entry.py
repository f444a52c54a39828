"""The records that people write as YAML: the texts and types of their keys.

.. code:: python

    class GateFile(Entry):
        trials: Count = 1
        \"\"\"How many trials each case gets. More of them see smaller changes.

        Example: 3
        \"\"\"

The text below a field says what its key is for; the example is what may stand behind the key, as YAML on
one line. Errors show the example, the JSON Schemas carry both for editors, and docs/configuration.md is
made of them. An entry may have ``find_contradictions``: it gets the values of the keys that are right by
themselves and the names of the others, and finds what does not fit together.
"""

import ast
import dataclasses
import inspect
import typing
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, cast

from gate.devices import DEVICE_FORMS, DEVICE_PATTERN
from gate.records.bounds import Amount, Entry, Fraction, Pattern, Range, write_percent

_EXAMPLE = "Example:"


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyDoc:
    """The text of a key, on one line, and an example of its value as YAML."""

    text: str
    example: str


def read_docs(entry_type: type[Entry]) -> Mapping[str, KeyDoc]:
    """Read the texts of an entry's keys from its source, and from that of the entry that it extends."""
    extended = [one for one in reversed(entry_type.__mro__) if issubclass(one, Entry) and one is not Entry]
    return {key: doc for one in extended for key, doc in _read_docs(cast("Hashable", one)).items()}


@cache
def _read_docs(entry_type: Any) -> Mapping[str, KeyDoc]:  # noqa: ANN401 - a class, which mypy takes for unhashable
    (node,) = ast.parse(inspect.getsource(entry_type)).body
    docs = {}
    for field, below in pairwise(cast("ast.ClassDef", node).body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            text, _, example = inspect.cleandoc(str(below.value.value)).rpartition(_EXAMPLE)
            docs[field.target.id] = KeyDoc(text=" ".join(text.split()), example=example.strip())
    return docs


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


VERSION = 1
REFERENCE_PACKAGE = "gate.models"  # of the models that come with compile-gate

Version = Annotated[int, Range(noun="a whole number", minimum=VERSION, maximum=VERSION)]
Threads = Annotated[int, Range(noun="a whole number", minimum=1, maximum=1024)]
MetricUnits = Annotated[float, Range(noun="a number (of seconds, bytes or log2 units)", minimum=0)]
# Beyond eleven times the baseline a threshold is the absence of one: quarantine says that aloud.
Share = Annotated[
    float,
    Fraction(
        percent=r"1000(\.0{1,20})?|[0-9]{1,3}(\.[0-9]{1,20})?",
        bare=Range(minimum=0, below=1),
        what="a percentage up to 1000%, or a fraction below 1",
    ),
]
# With more than an even chance of a false alarm a verdict says nothing.
ErrorBudget = Annotated[
    float,
    Fraction(
        percent=r"(?!0+(\.0+)? ?%)([0-4]?[0-9](\.[0-9]{1,20})?|50(\.0{1,20})?)",
        bare=Range(above=0, maximum=0.5),
        what="a percentage above 0% and up to 50%, or such a fraction",
    ),
]
Allowance = Annotated[float | str, Amount()]
Identifier = Annotated[str, Pattern(regex="[a-z0-9_]+", what="a name of a-z, 0-9 and _")]
Package = Annotated[str, Pattern(regex="[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", what="a package's name")]
Tag = Annotated[str, Pattern(regex="[A-Za-z0-9_.-]+", what="a tag of letters, digits, _, . and -")]
PathText = Annotated[
    str, Pattern(regex=r"[^\x00]*[^\x00\s][^\x00]*", what="a path: text that is not empty, without NUL")
]
DeviceName = Annotated[str, Pattern(regex=DEVICE_PATTERN, what=DEVICE_FORMS)]
Factory = Annotated[
    str, Pattern(regex=r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", what="package.module:function")
]
Backend = Annotated[
    str, Pattern(regex="[A-Za-z0-9_][A-Za-z0-9_.-]*", what="the name of a backend of torch.compile")
]
Node = Annotated[str, Pattern(regex=r"[^:]+\.py::.+", what="a pytest node id: path/test_x.py::test_name")]
StatusName = Annotated[
    str,
    Pattern(
        regex=r"((?!-)[A-Za-z0-9_./ -]{1,100})?", what="at most 100 letters, digits, _, ., /, - and spaces"
    ),
]
_ID = "a-z0-9."  # of an environment
EnvironmentIds = Annotated[
    str, Pattern(regex=rf"[{_ID}*?-]{{1,200}}", what="the id of an environment, or a pattern with `*`")
]
Login = Annotated[str, Pattern(regex=r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", what="a login of GitHub")]
# Neither controls nor what turns a line around or hides in it.
_UNSEEN = r"\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
LINE = Pattern(regex=rf"(?=.*\S)[^{_UNSEEN}]{{1,300}}", what="one line of 1 to 300 visible characters")
Line = Annotated[str, LINE]
