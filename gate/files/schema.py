"""What a file holds that its JSON Schema refuses: each value with its key, what was expected, and the fix.

The schemas are in ``gate/schemas``. Their ``errorMessage``, which editors show too, is what is expected.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from gate.files.invalid import (
    MAX_INVALID,
    MAX_MEMBERS_NAMED,
    InvalidValue,
    describe_key,
    describe_member,
    find_nearest,
    format_key,
    is_integer,
    is_number,
    is_text,
    quote_value,
)
from gate.files.yaml_out import write_scalar
from gate.records.bounds import FORMATS, write_percent

_DIRECTORY = Path(__file__).parent.parent / "schemas"
_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a finite number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}
_Schema = Mapping[str, Any]


def read_schema(name: str) -> str:
    return (_DIRECTORY / f"{name}.json").read_text(encoding="utf-8")


def list_invalid(name: str, value: object) -> list[InvalidValue]:
    validator = _make_validator(name)
    errors = validator.iter_errors(value)
    invalid: dict[InvalidValue, None] = {}  # in their order, each once: a value may be refused in two ways
    for item in chain.from_iterable(_describe_error(error, validator) for error in errors):
        invalid[item] = None
        if len(invalid) == MAX_INVALID:
            break
    return list(invalid)


def get_example(name: str, key: str) -> str:
    """Of a top-level key, or of one of a list's items (``accepted.case``)."""
    schema = _load_schema(name)
    for part in key.split(".")[:-1]:
        schema = schema["properties"][part]["items"]
    (example,) = schema["properties"][key.rpartition(".")[2]]["examples"]
    return example if isinstance(example, str) else write_scalar(example)


@cache
def _load_schema(name: str) -> _Schema:
    """Definitions are put in where they are referred to: looking them up takes a third of the time."""
    plain = json.loads(read_schema(name))

    def insert(part: Any) -> Any:  # noqa: ANN401 -- any part of a schema
        if isinstance(part, list):
            return [insert(item) for item in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            part = {**plain["$defs"][part["$ref"].rpartition("/")[2]], **part}
        if "pattern" in part:  # whose $ of Python's would let a line end follow
            part = {**part, "pattern": part["pattern"].removesuffix("$") + r"\Z"}
        return {key: insert(item) for key, item in part.items() if key not in {"$ref", "$defs"}}

    schema: _Schema = insert(plain)
    return schema


@cache
def _make_validator(name: str) -> Any:  # noqa: ANN401 -- a class that is made here
    """As strict as the decoder: 1.0 is no whole number, and NaN is no number."""
    from jsonschema import Draft202012Validator, FormatChecker, validators  # noqa: PLC0415 - 50 ms

    checks = {
        "integer": lambda _, value: is_integer(value),
        "number": lambda _, value: is_number(value),
        "string": lambda _, value: is_text(value),
    }
    types = Draft202012Validator.TYPE_CHECKER.redefine_many(checks)
    checker = FormatChecker(())
    for kind, holds in FORMATS.items():
        checker.checks(kind)(lambda value, holds=holds: not isinstance(value, str) or holds(value))
    strict: Any = validators.extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]
    return strict(_load_schema(name), format_checker=checker)


def _describe_error(error: Any, validator: Any) -> Iterator[InvalidValue]:  # noqa: ANN401 -- of jsonschema
    schema, value, key = error.schema, error.instance, _render_path(error)
    match error.validator:
        case "anyOf":
            for inner in _choose_branch(error):
                yield from _describe_error(inner, validator)
            return
        case "additionalProperties":
            known = schema["properties"]
            for name in (name for name in value if name not in known):
                problem, fix = describe_key(name, known)
                yield InvalidValue(key=_join(key, name), problem=problem, fix=fix)
            return
        case "required":
            yield from _list_missing(schema, value, key)
            return
        case "enum":
            known = error.validator_value
            problem, fix = describe_member(value, known)
            is_named = len(known) > MAX_MEMBERS_NAMED or (is_text(value) and find_nearest(value, known))
            fix = fix if is_named else _advise(error, validator.schema) or fix
        case _:
            expected = schema.get("errorMessage") or _TYPES[schema["type"]]
            if isinstance(value, str) and not is_text(value):
                expected = "text that UTF-8 can hold"
            problem = f"expected {expected}, got {quote_value(value)}"
            fix = (
                _suggest_percent(error, validator)
                or _advise(error, validator.schema)
                or f"Write {expected} there."
            )
    yield InvalidValue(key=key, problem=problem, fix=fix)


def _choose_branch(error: Any) -> Iterable[Any]:  # noqa: ANN401
    """The alternative that was meant is the first that the value went furthest in."""
    branches: dict[int, list[Any]] = {}
    for inner in error.context:
        branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    return max(branches.values(), key=lambda inner: max(len(leaf.relative_path) for leaf in inner))


def _list_missing(schema: _Schema, value: Mapping[str, object], key: str) -> Iterator[InvalidValue]:
    known = schema["properties"]
    unknown = islice((name for name in value if name not in known), MAX_INVALID)
    meant = {find_nearest(str(name), known) for name in unknown}
    for name in schema["required"]:
        if name not in value and name not in meant:
            fix = _show_example(name, known[name]) or f"Add {name!r} there."
            yield InvalidValue(key=key, problem=f"the key {name!r} is missing", fix=fix)


def _advise(error: Any, root: _Schema) -> str:  # noqa: ANN401
    node, advice = root, ""
    for part in error.absolute_schema_path:
        node = node[part]
        if part == "properties":
            advice = ""  # of a key further out
        elif isinstance(node, Mapping):
            advice = _show_example(part, node) or advice
    return advice


def _show_example(name: str, key: _Schema) -> str:
    """``Write, for example, `trials: 3`; the default is 1.``, or nothing."""
    if "examples" not in key:
        return ""
    default = key.get("default")
    text = ""
    if isinstance(default, bool):
        text = str(default).lower()
    elif isinstance(default, float):
        text = write_percent(default) if isinstance(key.get("type"), list) else f"{default:g}"
    elif isinstance(default, (int, str)):
        text = str(default)
    rest = f"; the default is {text}." if text else "."
    return f"Write, for example, `{name}: {write_scalar(key['examples'][0])}`{rest}"


def _suggest_percent(error: Any, validator: Any) -> str:  # noqa: ANN401
    value = error.instance
    if error.schema.get("type") != ["number", "string"] or not is_number(value) or value < 1:
        return ""
    forms = (f"{value:g}%", value / 100)
    right = [f"{form}" for form in forms if validator.evolve(schema=error.schema).is_valid(form)]
    return f"Write {' or '.join(right)}." if right else ""


def _render_path(error: Any) -> str:  # noqa: ANN401
    key = ""
    for part in error.absolute_path:
        key = f"{key}[{part}]" if isinstance(part, int) else _join(key, part)
    return _join(key, error.instance) if "propertyNames" in error.absolute_schema_path else key


def _join(key: str, name: object) -> str:
    return (key + format_key(name)).removeprefix(".")
