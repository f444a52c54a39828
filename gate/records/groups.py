"""Records put together by their case, and tables by their keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class _OfCase(Protocol):
    @property
    def case_id(self) -> str: ...


Record = TypeVar("Record", bound=_OfCase)


def group_cases(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records by case id, in their order."""
    grouped: dict[str, list[Record]] = {}
    for record in records:
        grouped.setdefault(record.case_id, []).append(record)
    return grouped


def collect_columns(tables: Iterable[Mapping[Key, Value]]) -> dict[Key, tuple[Value, ...]]:
    """What tables hold under each key, in the order of the tables that have it."""
    columns: dict[Key, list[Value]] = {}
    for table in tables:
        for key, value in table.items():
            columns.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in columns.items()}
