"""Frozen records -> plain values; :mod:`gate.files.structure` is the way back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any


def encode(record: object) -> Any:  # noqa: ANN401 -- plain JSON values have no narrower type
    """Encode a record into dicts, lists, strings and numbers; the inverse of decoding."""
    kind = type(record)
    if kind is float or kind is str or record is None or kind is int or kind is bool:
        return record
    if isinstance(record, StrEnum):
        return record.value
    if isinstance(record, (tuple, list)):
        if set(map(type, record)) <= {float}:
            return list(record)
        return [encode(item) for item in record]
    if isinstance(record, Mapping):
        return {str(key): encode(item) for key, item in record.items()}
    if dataclasses.is_dataclass(kind):
        return {name: encode(getattr(record, name)) for name in _list_field_names(kind)}
    raise TypeError(f"cannot encode {kind.__name__}")


@cache
def _list_field_names(record_type: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(record_type))
