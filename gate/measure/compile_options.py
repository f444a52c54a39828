"""Options of torch.compile: Dynamo's, Inductor's and AOT autograd's, by name, as ``inductor.cpp.threads``.

A value is JSON. Left out is what no figure depends on, or what no JSON holds, as a function.
"""

import importlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gate.files.codec import write_atomic
from gate.measure.graph import get_cache_directory
from gate.measure.private import COMPILES, DYNAMO_OPTIONS, FUNCTORCH_OPTIONS, INDUCTOR_OPTIONS
from gate.records.protocol import OPTIONS_FILE

# By what begins their names: the module, and the field of a compile's record. A mode, or `options` of
# torch.compile, sets some for a compile alone: only its record has them.
_MODULES = {
    "dynamo": (DYNAMO_OPTIONS, "dynamo_config"),
    "inductor": (INDUCTOR_OPTIONS, "inductor_config"),
    "functorch": (FUNCTORCH_OPTIONS, "functorch_config"),
}
# Where files lie, and what is logged, checked or counted on the way. The last two are the gate's own.
_SILENT = re.compile(
    r"(^|[._])(dir|root|path|folder|debug|log|logging|verbose|trace|repro|compile_threads|vec_isa_ok)($|[._])"
    r"|^\w+\._"
)
_MOST_CHARS = 200  # of a value: longer ones are tables of names


def read_options() -> dict[str, str]:
    return {
        f"{prefix}.{name}": value
        for prefix, (function, _) in _MODULES.items()
        if (copy := function.find())
        for name, value in _list_written(prefix, copy())
    }


def keep_options() -> None:
    """Leave the options of this process, of which no code has set any, for the processes of trials."""
    write_atomic(get_cache_directory() / OPTIONS_FILE, json.dumps(read_options()))


def read_set_options() -> dict[str, str]:
    path, list_records = get_cache_directory() / OPTIONS_FILE, COMPILES.find()
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {
        name: value
        for record in (list_records() if list_records else ())
        for name, value in _list_recorded(record)
        if kept.get(name, value) != value
    }


def set_options(options: Mapping[str, str]) -> None:
    """Set options of this process; raises AttributeError where this release has no such one."""
    for name, value in options.items():
        prefix, _, option = name.partition(".")
        setattr(importlib.import_module(_MODULES[prefix][0].module), option, json.loads(value))


def _list_recorded(record: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - torch's
    for prefix, (_, field) in _MODULES.items():
        try:
            values = json.loads(getattr(record, field, None) or "{}")
        except ValueError:  # a sentence: why there are none
            continue
        for name, value in _list_written(prefix, values):
            yield f"{prefix}.{name}", value


def _list_written(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if _SILENT.search(f"{prefix}.{name}"):
            continue
        try:
            written = json.dumps(value, default=sorted, sort_keys=True)
        except TypeError:
            continue
        if isinstance(value, list | tuple | set | frozenset):
            written = json.dumps(sorted(map(str, value)))  # a record has what is a set here in any order
        if len(written) <= _MOST_CHARS:
            yield name, written
