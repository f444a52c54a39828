"""Plain values (dict, list, str, number, bool, None) -> frozen records, strictly.

One decoder per type is built from its type hints and cached. Decoding is strict: no unknown keys, no
missing ones, ``true`` is not a number, numbers are finite. Errors say where: ``run.json:
trials[3].samples.compiled_latency[2]: ...``. The bytes come through :mod:`gate.files.untrusted` first.
A container goes on after an item that does not fit, so that a file's mistakes can be told at once.
"""

import builtins
import collections.abc
import dataclasses
import math
import types
import typing
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from enum import EnumMeta, StrEnum
from functools import cache
from typing import Any, TypeVar, cast

from gate.errors import FileError
from gate.files.entry import advise_key
from gate.files.untrusted import (
    MAX_DEPTH,
    MAX_INTEGER,
    Collector,
    ValidationError,
    expect,
    expect_key,
    expect_member,
    find_nearest,
    format_key,
    refuse,
)
from gate.records.bounds import Bound, Entry, Format


def _decode_float(value: object) -> float:
    kind = type(value)
    if kind is float or (kind is int and -MAX_INTEGER <= cast("int", value) <= MAX_INTEGER):
        number = float(cast("float", value))
        if math.isfinite(number):
            return number
    raise expect("a finite number", value)


def _decode_int(value: object) -> int:
    if type(value) is not int:
        raise expect("a whole number", value)
    if not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise expect("a whole number of at most 64 bits", value)
    return value


def _decode_bool(value: object) -> bool:
    if type(value) is bool:
        return value
    raise expect("true or false", value)


def _decode_str(value: object) -> str:
    if type(value) is not str:
        raise expect("text", value)
    if not value.isascii() and not is_encodable(value):
        raise expect("text that UTF-8 can hold", value, "Replace what is no character in it.")
    return value


def is_encodable(text: str) -> bool:
    """Whether it is without lone surrogates, which JSON can spell and no report could hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_T = TypeVar("_T")
_Decoder = Callable[[object], Any]


def decode(record_type: type[_T], value: object, source: str, within: str = "") -> _T:
    """Decode a plain ``value`` into a record, or any type that records are made of.

    ``source`` names the file in errors, and ``within`` the key path of the value in it.

    Raises:
        FileError: With the file, the key path, what is wrong and the fix, of the first invalid value.
    """
    try:
        return fit(record_type, value)
    except ValidationError as error:
        first = error.found[0]
        path = f"{within}{first.render_path()}".removeprefix(".")
        raise FileError(source, path, first.problem, first.fix) from None


def fit(record_type: type[_T], value: object) -> _T:
    """Decode as :func:`decode` does, for whoever wants to tell all that is wrong.

    Raises:
        ValidationError: All that does not fit, up to ``MAX_INVALID``.
    """
    decoder: _Decoder = _make_decoder(cast("Hashable", record_type))
    return cast("_T", decoder(value))


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
            return (
                _decode_floats if arguments[0] is float else _make_items_decoder(_make_decoder(arguments[0]))
            )
        case collections.abc.Mapping:
            return _make_entries_decoder(*map(_make_decoder, arguments))
        case types.UnionType | typing.Union:
            return _make_union_decoder(arguments)
    raise TypeError(f"the codec does not know {annotation!r}")


def _decode_floats(value: object) -> tuple[float, ...]:
    # The fast path of raw samples: a sum is finite only when every term is.
    if type(value) is list and set(map(type, value)) == {float} and math.isfinite(sum(value)):
        return tuple(value)
    return cast("tuple[float, ...]", _decode_floats_slowly(value))


def _decode_object(value: object, depth: int = 0) -> object:
    """Any plain value; numbers are checked, containers are copied."""
    if depth > MAX_DEPTH:
        raise refuse(f"is nested deeper than {MAX_DEPTH} levels", "Write a flatter value there.")
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
    raise expect("a plain value", value)


def _make_format_decoder(notation: Format) -> _Decoder:
    def decode_notation(value: object) -> object:
        decoded = notation.read(value)
        if decoded is None:
            raise expect(notation.describe(), value, notation.advise(value))
        return decoded

    return decode_notation


def _make_limited_decoder(annotation: Hashable, limit: Bound) -> _Decoder:
    decode_value = _make_decoder(annotation)
    is_union = typing.get_origin(annotation) in {types.UnionType, typing.Union}

    def decode_limited(value: object) -> object:
        try:
            decoded = decode_value(value)
        except ValidationError as error:
            # Of another kind altogether: the limit says better what was expected, but for one of "one or
            # more", which a single value obeys.
            is_other = not is_union and any(one.says_little and not one.path for one in error.found)
            raise expect(limit.describe(), value) if is_other else error from None
        if not limit.holds(decoded):
            raise expect(limit.describe(), value)
        return decoded

    return decode_limited


def _make_items_decoder(decode_item: _Decoder) -> _Decoder:
    def decode_items(value: object) -> tuple[Any, ...]:
        if type(value) is not list:
            raise expect("a list", value)
        items: list[Any] = []
        collector = Collector()
        for index, item in enumerate(value):
            try:
                items.append(decode_item(item))
            except ValidationError as error:
                collector.add(error, f"[{index}]")
        collector.close()
        return tuple(items)

    return decode_items


def _make_entries_decoder(decode_key: _Decoder, decode_item: _Decoder) -> _Decoder:
    def decode_entries(value: object) -> dict[Any, Any]:
        if type(value) is not dict:
            raise expect("a mapping", value)
        items: dict[Any, Any] = {}
        collector = Collector()
        for key, item in value.items():
            try:
                decoded_key = decode_key(key)
                items[decoded_key] = decode_item(item)
            except ValidationError as error:
                collector.add(error, format_key(key))
        collector.close(items)
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
            raise expect_member(value, list(members))
        return member

    return decode_member


def _make_record_decoder(record_type: type) -> _Decoder:
    hints = get_hints(record_type)
    fields = dataclasses.fields(record_type)
    decoders = {field.name: _make_decoder(hints[field.name]) for field in fields}
    required = {
        field.name: None  # in their order
        for field in fields
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }.keys()
    find_contradictions = getattr(record_type, "find_contradictions", None)  # of entries

    def decode_record(value: object) -> object:
        if type(value) is not dict:
            raise expect("a mapping", value)
        values: dict[str, Any] = {}
        wrong: dict[str, dict[Any, Any]] = {}  # with what fits of those that are mappings
        collector = Collector()
        for name, item in value.items():
            decoder = decoders.get(name)
            try:
                if decoder is None:
                    raise expect_key(name, decoders)
                values[name] = decoder(item)
            except ValidationError as error:
                collector.add(_advise(error, record_type, name), format_key(name))
                wrong[name] = error.rest or {}
        for name in () if required <= value.keys() else _list_missing(required, value, decoders):
            missing = refuse(f"the key {name!r} is missing", f"Add {name!r} there.", says_little=True)
            collector.add(_advise(missing, record_type, name), "")
        if find_contradictions:
            rest = {name: known for name, known in wrong.items() if known}
            collector.found += find_contradictions({**values, **rest}, wrong)
        collector.close()
        return record_type(**values)

    return decode_record


def _list_missing(
    required: Iterable[str], value: Mapping[str, object], known: Collection[str]
) -> Iterator[str]:
    """List the keys that are missing, less those that an unknown key is a slip of the pen of."""
    meant = {find_nearest(str(key), known) for key in value if key not in known}
    return (name for name in required if name not in value and name not in meant)


def _advise(error: ValidationError, record_type: type, name: str) -> ValidationError:
    """Let the example of the key stand for advice that says little; only what people write has one."""
    if issubclass(record_type, Entry) and (advice := advise_key(record_type, name)):
        for invalid in error.found:
            invalid.fix = advice if invalid.says_little else invalid.fix
            invalid.says_little = False
    return error


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
    """The type of each field, with its bounds."""
    return typing.get_type_hints(record_type, include_extras=True)
