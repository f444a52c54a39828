"""The border where YAML becomes plain values: the core schema of YAML 1.2, and nothing that surprises.

``no`` and ``on`` are text, ``1e-5`` is a number, a date is text. Anchors, aliases, tags, several
documents and duplicate keys are refused, which rules out every bomb; errors name the line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from gate.entries import VERSION
from gate.errors import FileError
from gate.hostile import MAX_DEPTH, MAX_INTEGER, check_size, decode_text, format_value, load_bytes
from gate.plain import decode, format_key

T = TypeVar("T")

# A registry of 10,000 cases, each a line of 100 bytes: more than any repository has.
MAX_YAML_BYTES = 1024 * 1024

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is 10 times as fast
_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_INTEGER_CHARS = 20  # a sign and 19 digits: 64 bits
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


@dataclass(frozen=True, kw_only=True, slots=True)
class YamlDocument:
    """A parsed document: its plain value, and the line of every key path in it."""

    source: str
    value: object
    lines: Mapping[str, int]

    def find_line(self, key: str) -> int:
        """Find the line of a key path or of its nearest ancestor; 0 when there is none."""
        while key and key not in self.lines:
            key = key[: max(key.rfind("."), key.rfind("["), 0)]
        return self.lines.get(key, 0)

    def locate(self, error: FileError) -> FileError:
        """Add the line to an error that was raised about this document."""
        line = self.find_line(error.key)
        where = f"{self.source}:{line}" if line else self.source
        return FileError(where, error.key, error.problem, error.fix)


def parse_yaml(data: bytes, source: str) -> YamlDocument:
    """Parse YAML; an empty document is None.

    Raises:
        FileError: With the line: syntax, size, depth, aliases, tags, duplicate keys, NaN.
    """
    check_size(data, MAX_YAML_BYTES, source)
    text = decode_text(data, source)
    try:
        _check_events(text, source)
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise _describe_syntax(error, source) from None
    builder = _Builder(source)
    value = None if node is None else builder.build(node, "")
    return YamlDocument(source=source, value=value, lines=builder.lines)


def load_yaml(file_type: type[T], path: Path) -> tuple[T, YamlDocument]:
    """Load one of our own YAML files, a record with a ``version``.

    Raises:
        FileError: With the line: it does not exist, is not YAML, is newer or does not fit.
    """
    return decode_yaml(file_type, load_bytes(path, MAX_YAML_BYTES), str(path))


def decode_yaml(file_type: type[T], data: bytes, source: str) -> tuple[T, YamlDocument]:
    """Decode the bytes of one of our own YAML files; raises as :func:`load_yaml`."""
    document = parse_yaml(data, source)
    try:
        _check_version(document.value, source)
        return decode(file_type, document.value, source), document
    except FileError as error:
        raise document.locate(error) from None


def _check_version(value: object, source: str) -> None:
    begin = f"Begin the file with 'version: {VERSION}'."
    if value is None:
        raise FileError(source, "", "is empty", begin)
    if not isinstance(value, dict):
        return  # the decoder says what it is instead
    if "version" not in value:
        raise FileError(source, "", "the key 'version' is missing", begin)
    version = value["version"]
    if isinstance(version, int) and version > VERSION:
        problem = f"is {version}, newer than this compile-gate reads ({VERSION})"
        raise FileError(source, "version", problem, "Install the newest compile-gate.")


def _check_events(text: str, source: str) -> None:
    """Refuse what could blow up or surprise, before a tree is built."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=_LOADER):
        line = 1 + (event.start_mark.line if event.start_mark else 0)
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _refuse(source, line, "uses an anchor or alias (& or *)", "Write the value out.")
        if getattr(event, "tag", None):
            raise _refuse(
                source, line, "uses a tag (!)", "Write a plain value; quote text that begins with !."
            )
        if depth > MAX_DEPTH:
            raise _refuse(source, line, f"is nested deeper than {MAX_DEPTH} levels", "Write it flatter.")
        if documents > 1:
            raise _refuse(source, line, "holds more than one document (---)", "Split the file.")


def _refuse(source: str, line: int, problem: str, fix: str) -> FileError:
    return FileError(f"{source}:{line}", "", problem, fix)


def _describe_syntax(error: yaml.YAMLError, source: str) -> FileError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    where = source if mark is None else f"{source}:{mark.line + 1}"
    return FileError(where, "", f"is not YAML: {problem}", "Fix the syntax there; check the indentation.")


class _Builder:
    """Turns nodes into plain values and notes the line of each."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines: dict[str, int] = {}

    def build(self, node: yaml.Node, path: str) -> object:
        if isinstance(node, yaml.MappingNode):
            return dict(self._build_pairs(node, path))
        if isinstance(node, yaml.SequenceNode):
            return [self._build_item(item, f"{path}[{index}]") for index, item in enumerate(node.value)]
        return self._build_scalar(node, path)

    def _build_item(self, node: yaml.Node, path: str) -> object:
        self.lines[path] = node.start_mark.line + 1
        return self.build(node, path)

    def _build_pairs(self, node: yaml.MappingNode, path: str) -> Iterator[tuple[str, object]]:
        seen: set[str] = set()
        for key_node, item in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise _refuse(self.source, line, "has a key that is not text", "Write a plain key.")
            key = str(key_node.value)
            if key in seen:
                problem = f"has the key {format_value(key)} twice"
                raise _refuse(self.source, line, problem, "Remove one of the two.")
            seen.add(key)
            inner = (path + format_key(key)).removeprefix(".")
            self.lines[inner] = line
            yield key, self.build(item, inner)

    def _build_scalar(self, node: yaml.Node, path: str) -> object:
        text = str(node.value)
        if getattr(node, "style", None):  # quoted or a block: always text
            return text
        if text in _NULLS:
            return None
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        if not _NUMBER.fullmatch(text) and not _NOT_FINITE.fullmatch(text):
            return text
        number = _parse_number(text)
        if number is None:
            problem = f"expected a finite number of at most 64 bits, got {format_value(text)}"
            where = f"{self.source}:{node.start_mark.line + 1}"
            raise FileError(where, path, problem, "Write such a number, or quote it to make it text.")
        return number


def _parse_number(text: str) -> int | float | None:
    """Parse what looks like a number; None when it is infinite, NaN or an integer beyond 64 bits."""
    if _NOT_FINITE.fullmatch(text):
        return None
    if _INTEGER.fullmatch(text):
        integer = int(text) if len(text) <= _INTEGER_CHARS else MAX_INTEGER + 1
        return integer if abs(integer) <= MAX_INTEGER else None
    number = float(text)
    return number if math.isfinite(number) else None
