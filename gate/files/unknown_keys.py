"""Dropping keys that a record does not have: how a file of a newer minor version is read.

Nothing is decoded here: what is left goes through the strict decoder of :mod:`gate.files.structure`, so a
dropped key is neither believed nor shown.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any, cast

_SCALARS = (float, str, int, bool)


def drop_unknown_keys(annotation: Any, value: object) -> object:  # noqa: ANN401 -- an annotation can be anything
    """Copy a plain value without the keys that the records of ``annotation`` do not have."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if dataclasses.is_dataclass(annotation) and isinstance(value, dict):
        hints = _get_hints(cast("Hashable", annotation))
        return {key: drop_unknown_keys(hints[key], item) for key, item in value.items() if key in hints}
    if origin is typing.Annotated:
        return drop_unknown_keys(arguments[0], value)
    if arguments and arguments[-1] in _SCALARS:  # a list of a million samples has no keys
        return value
    if origin is tuple and isinstance(value, list):
        return [drop_unknown_keys(arguments[0], item) for item in value]
    if origin is Mapping and isinstance(value, dict):
        return {key: drop_unknown_keys(arguments[1], item) for key, item in value.items()}
    if origin in (types.UnionType, typing.Union):
        for member in arguments:
            value = drop_unknown_keys(member, value)
    return value


@cache
def _get_hints(record_type: Any) -> Mapping[str, Any]:  # noqa: ANN401 -- a record's type
    return typing.get_type_hints(record_type, include_extras=True)
