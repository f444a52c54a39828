"""Takes apart what torch writes of a recompile: the guard, the line that made it, and where that is.

Torch writes ``3/1: n == 1  # y = n * x  # a.py:8 in f (HINT: ...)`` on the first line. A size's guard has
two such places and ends in torch's own; what compares tensors has none, and is of the function compiled.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gate.measure.device.private import find_private
from gate.records import Recompile

Locate = Callable[[str, int | None], str]

MAX_CODE = 160  # characters of one line of code
_MAX_GUARD = 400
_FRAME_NUMBER = re.compile(r"^\d+/\d+: ")  # the frame, and how often it was compiled before
_SEPARATOR = "  # "
_PLACE = re.compile(r"(?:^|  # )(?P<file>[^#]+?):(?P<line>\d+) in (?P<function>\S+)")
_HINT = re.compile(r"\s*\(HINT: .*")
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d+$")  # behind a graph break; the number is its line
# Addresses, of another value in each process.
_ADDRESS = re.compile(r"(?<=_id\()(.+), \d+(?=\))| at 0x[0-9a-f]+")


def list_recompiles(records: Iterable[Any], locate: Locate) -> Iterable[Recompile]:
    """Each recompile in torch's compilation metrics; ``locate`` writes a file and line as a place."""
    known = list(records)
    files = _name_files(known)
    for record in known:
        if reason := getattr(record, "recompile_reason", None):
            yield _parse_reason(reason.strip().partition("\n")[0], record, files, locate)


def _parse_reason(reason: str, record: Any, files: Mapping[str, str], locate: Locate) -> Recompile:  # noqa: ANN401 - torch's
    guard, _, rest = _FRAME_NUMBER.sub("", reason).partition(_SEPARATOR)
    place = _PLACE.search(rest)
    file, line, function = getattr(record, "co_filename", ""), getattr(record, "co_firstlineno", None), ""
    if place:
        file, line = files.get(place["file"], place["file"]), int(place["line"])
    function = place["function"] if place else getattr(record, "co_name", "")
    return Recompile(
        guard=" ".join(_ADDRESS.sub(r"\1", _HINT.sub("", guard)).split())[:_MAX_GUARD],
        code=" ".join(rest[: place.start()].split())[:MAX_CODE] if place else "",
        location=locate(file, line) if file else "",
        function=_RESUMED.sub(r"\1", function or ""),
    )


def _name_files(records: Iterable[Any]) -> dict[str, str]:
    """Files by what torch calls them: it takes off what their paths share with its own directory's."""
    shorten = find_private("torch.utils._traceback", "shorten_filename")
    compiled = (getattr(record, "co_filename", None) for record in records)
    return {shorten(file): file for file in (*linecache.cache, *compiled) if file} if shorten else {}
