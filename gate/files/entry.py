"""What records of files that people write have in common; JSON Schemas describe and bound their keys."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Annotated, ClassVar, Protocol

from gate.devices import DEVICE_FORMS, DEVICE_PATTERN
from gate.files.untrusted import InvalidValue, format_key
from gate.records.bounds import Amount, Fraction, Pattern


class YamlFile(Protocol):
    """A record of a file that people write."""

    SCHEMA: ClassVar[str]  # the name of its JSON Schema


def list_contradictions(
    value: object, key: str = "", left_out: Collection[str] = ()
) -> Iterator[InvalidValue]:
    """List what does not fit together in an entry and those within it, ``key`` being where it stands.

    An entry may have ``find_contradictions``, which finds what its JSON Schema cannot say. Keys that were
    ``left_out``, since they hold mistakes, have their defaults.
    """
    if is_dataclass(value):
        for field in fields(value):
            yield from list_contradictions(getattr(value, field.name), f"{key}.{field.name}")
        find = getattr(value, "find_contradictions", None)
        for invalid in find(left_out) if find else ():
            yield replace(invalid, key=(key + invalid.key).removeprefix("."))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from list_contradictions(item, f"{key}[{index}]")
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from list_contradictions(item, key + format_key(name))


VERSION = 1
REFERENCE_PACKAGE = "gate.models"  # of the models that come with compile-gate

Share = Annotated[float, Fraction()]
Allowance = Annotated[float | str, Amount()]
DeviceName = Annotated[str, Pattern(regex=DEVICE_PATTERN, what=DEVICE_FORMS)]
# Neither controls nor what turns a line around or hides in it.
_UNSEEN = r"\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
LINE = Pattern(regex=rf"(?=.*\S)[^{_UNSEEN}]{{1,300}}", what="one line of 1 to 300 visible characters")
Line = Annotated[str, LINE]
