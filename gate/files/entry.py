"""What records of files that people write have in common; JSON Schemas describe and bound their keys."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Annotated, Any, ClassVar, Protocol

from gate.files.invalid import InvalidValue, format_key
from gate.records.bounds import Amount, Fraction, Pattern

VERSION = 1
REFERENCE_PACKAGE = "gate.models"  # of the models that come with compile-gate

Share = Annotated[float, Fraction()]
Allowance = Annotated[float | str, Amount()]
# Neither controls nor what turns a line around or hides in it.
_UNSEEN = r"\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
LINE = Pattern(regex=rf"(?=.*\S)[^{_UNSEEN}]{{1,300}}", what="one line of 1 to 300 visible characters")


class YamlFile(Protocol):
    SCHEMA: ClassVar[str]  # the name of its JSON Schema


def list_contradictions(entry: Any, key: str = "", left_out: Collection[str] = ()) -> Iterator[InvalidValue]:  # noqa: ANN401 -- any record
    """List what does not fit together in an entry at ``key``, and in those in its lists and mappings.

    Keys that were ``left_out``, since they hold mistakes, have their defaults.
    """
    for field in fields(entry):
        values = getattr(entry, field.name)
        items: Iterable[tuple[str, object]] = ()
        if isinstance(values, tuple):
            items = ((f"[{index}]", item) for index, item in enumerate(values))
        elif isinstance(values, Mapping):
            items = ((format_key(name), item) for name, item in values.items())
        for suffix, item in items:
            if hasattr(item, "find_contradictions"):
                yield from list_contradictions(item, f"{key}.{field.name}{suffix}")
    if hasattr(entry, "find_contradictions"):
        for invalid in entry.find_contradictions(left_out):
            yield replace(invalid, key=(key + invalid.key).removeprefix("."))
