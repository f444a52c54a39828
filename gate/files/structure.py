"""Plain values (dict, list, str, number, bool, None) -> frozen records, strictly.

No unknown keys, no missing ones, ``true`` is not a number, numbers are finite. Errors name the place:
``run.json: trials[3].samples.compiled_latency[2]: ...``. Bytes come through :mod:`gate.files.untrusted`
first.
"""

import builtins
import collections.abc
import dataclasses
import math
import types
import typing
from collections.abc import Callable, Hashable, Iterable, Mapping
from enum import EnumMeta, StrEnum
from functools import cache
from typing import Any, NoReturn, TypeVar, cast

from gate.errors import FileError
from gate.files.invalid import (
    describe_key,
    describe_member,
    format_key,
    is_integer,
    is_number,
    is_text,
    quote_value,
)
from gate.files.untrusted import MAX_DEPTH
from gate.records.bounds import Bound, Format

_T = TypeVar("_T")
_Decoder = Callable[[object], Any]


class _MisfitError(Exception):
    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.fix = fix
        self.path: list[str] = []  # innermost first


def _expect(what: str, value: object) -> _MisfitError:
    return _MisfitError(f"expected {what}, got {quote_value(value)}", f"Write {what} there.")


def _decode_float(value: object) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    if is_number(value):
        return float(value)
    raise _expect("a finite number", value)


def _decode_int(value: object) -> int:
    if is_integer(value):
        return value
    raise _expect("a whole number", value)


def _decode_bool(value: object) -> bool:
    if type(value) is bool:
        return value
    raise _expect("true or false", value)


def _decode_str(value: object) -> str:
    if (type(value) is str and value.isascii()) or is_text(value):
        return value
    raise _expect("text", value)


def decode(record_type: type[_T], value: object, source: str, within: str = "") -> _T:
    """Decode a plain ``value`` into a record, or any type that records are made of.

    ``source`` names the file in errors, and ``within`` the key path of the value in it.

    Raises:
        FileError: Of the first invalid value: the file, the key path, what is wrong and the fix.
    """
    decoder = _make_decoder(cast("Hashable", record_type))
    try:
        return cast("_T", decoder(value))
    except _MisfitError as error:
        path = "".join((within, *reversed(error.path))).removeprefix(".")
        raise FileError(source, path, error.problem, error.fix) from None


@cache
def _make_decoder(annotation: Any) -> _Decoder:  # noqa: ANN401 -- an annotation can be anything
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if isinstance(annotation, EnumMeta) and issubclass(annotation, StrEnum):
        return _make_enum_decoder(annotation)
    if dataclasses.is_dataclass(annotation):
        return _make_record_decoder(cast("type", annotation))
    return _make_generic_decoder(annotation)


def _make_generic_decoder(annotation: object) -> _Decoder:
    arguments = typing.get_args(annotation)
    match typing.get_origin(annotation):
        case typing.Annotated:
            inner, rule, *_ = arguments
            if isinstance(rule, Format):
                return _make_format_decoder(rule)
            return _make_limited_decoder(inner, rule)
        case builtins.tuple:
            item, _ = arguments
            return _decode_floats if item is float else _make_items_decoder(_make_decoder(item))
        case collections.abc.Mapping:
            return _make_entries_decoder(*map(_make_decoder, arguments))
        case types.UnionType | typing.Union:
            return _make_union_decoder(arguments)
    raise TypeError(f"the codec does not know {annotation!r}")


def _decode_floats(value: object) -> tuple[float, ...]:
    # The fast path of raw samples: a sum is finite only when every term is.
    if type(value) is list and len(value) == 1 and type(value[0]) is float and math.isfinite(value[0]):
        return (value[0],)
    if type(value) is list and set(map(type, value)) == {float} and math.isfinite(sum(value)):
        return tuple(value)
    return cast("tuple[float, ...]", _decode_floats_slowly(value))


def _decode_object(value: object, depth: int = 0) -> object:
    if depth > MAX_DEPTH:
        raise _MisfitError(f"is nested deeper than {MAX_DEPTH} levels", "Write a flatter value there.")
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, float):
        return _decode_float(value)
    if isinstance(value, int):
        return _decode_int(value)
    if isinstance(value, list):
        return list(_make_items_decoder(lambda item: _decode_object(item, depth + 1))(value))
    if isinstance(value, dict):
        return _make_entries_decoder(_decode_str, lambda item: _decode_object(item, depth + 1))(value)
    raise _expect("a plain value", value)


def _make_format_decoder(notation: Format) -> _Decoder:
    def decode_notation(value: object) -> object:
        decoded = notation.read(value)
        if decoded is None:
            raise _expect(notation.describe(), value)
        return decoded

    return decode_notation


def _make_limited_decoder(annotation: Hashable, limit: Bound) -> _Decoder:
    decode_value = _make_decoder(annotation)

    def decode_limited(value: object) -> object:
        decoded = decode_value(value)
        if not limit.holds(decoded):
            raise _expect(limit.describe(), value)
        return decoded

    return decode_limited


def _make_items_decoder(decode_item: _Decoder) -> _Decoder:
    def decode_items(value: object) -> tuple[Any, ...]:
        if type(value) is not list:
            raise _expect("a list", value)
        if not value:
            return ()
        items: list[Any] = []
        try:
            for item in value:
                items.append(decode_item(item))  # noqa: PERF401 - their number shows where it failed
        except _MisfitError as error:
            error.path.append(f"[{len(items)}]")
            raise
        return tuple(items)

    return decode_items


def _make_entries_decoder(decode_key: _Decoder, decode_item: _Decoder) -> _Decoder:
    def decode_entries(value: object) -> dict[Any, Any]:
        if type(value) is not dict:
            raise _expect("a mapping", value)
        if not value:
            return {}
        items: dict[Any, Any] = {}
        for key, item in value.items():
            try:
                items[decode_key(key)] = decode_item(item)
            except _MisfitError as error:
                error.path.append(format_key(key))
                raise
        return items

    return decode_entries


def _make_union_decoder(members: tuple[Any, ...]) -> _Decoder:
    """``T | None``, and ``T | tuple[T, ...]`` for keys that take one value or a list."""
    lists = [_make_decoder(member) for member in members if typing.get_origin(member) is tuple]
    others = [
        _make_decoder(member)
        for member in members
        if member is not types.NoneType and typing.get_origin(member) is not tuple
    ]
    if len(lists) > 1 or len(others) > 1:
        raise TypeError(f"the codec does not know the union of {members!r}")
    decode_list: _Decoder = [*lists, *others][0]
    decode_other: _Decoder = [*others, *lists][0]
    optional = types.NoneType in members

    def decode_union(value: object) -> object:
        if value is None and optional:
            return None
        return decode_list(value) if type(value) is list else decode_other(value)

    return decode_union


def _make_enum_decoder(enumeration: type[StrEnum]) -> _Decoder:
    members = {member.value: member for member in enumeration}

    def decode_member(value: object) -> object:
        member = members.get(value) if type(value) is str else None
        if member is None:
            raise _MisfitError(*describe_member(value, list(members)))
        return member

    return decode_member


def _make_record_decoder(record_type: type) -> _Decoder:
    hints = get_hints(record_type)
    fields = dataclasses.fields(record_type)
    # With the name itself: a call finds its keyword arguments by identity first, and slowly by equality.
    decoders = {field.name: (field.name, _make_decoder(hints[field.name])) for field in fields}
    names = list(decoders)
    in_order = [(*pair, getattr(record_type, pair[0]).__set__) for pair in decoders.values()]
    required = [
        field.name
        for field in fields
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]

    def decode_record(value: object) -> object:
        if type(value) is not dict:
            raise _expect("a mapping", value)
        if [*value] == names:  # as we write it: a constructor would take three times as long
            record: object = object.__new__(record_type)
            for item, (name, decode_field, set_field) in zip(value.values(), in_order, strict=True):
                try:
                    set_field(record, decode_field(item))
                except _MisfitError as error:
                    error.path.append(format_key(name))
                    raise
            return record
        values: dict[str, Any] = {}
        for key, item in value.items():
            try:
                name, decode_field = decoders.get(key) or _refuse_key(key, decoders)
                values[name] = decode_field(item)
            except _MisfitError as error:
                error.path.append(format_key(key))
                raise
        for name in required:
            if name not in values:
                raise _MisfitError(f"the key {name!r} is missing", f"Add {name!r} there.")
        return record_type(**values)

    return decode_record


def _refuse_key(name: object, known: Iterable[str]) -> NoReturn:
    raise _MisfitError(*describe_key(name, known))


_SCALARS: dict[Any, _Decoder] = {
    float: _decode_float,
    int: _decode_int,
    bool: _decode_bool,
    str: _decode_str,
    object: _decode_object,
}
_decode_floats_slowly = _make_items_decoder(_decode_float)


@cache
def get_hints(record_type: Any) -> Mapping[str, Any]:  # noqa: ANN401 -- a record's type
    return typing.get_type_hints(record_type, include_extras=True)
