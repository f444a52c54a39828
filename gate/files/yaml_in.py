"""YAML to plain values: the core schema of YAML 1.2, and nothing that surprises.

``no`` and ``on`` are text, ``1e-5`` is a number, a date is text. Anchors, aliases, tags and duplicate keys
are refused, which rules out every bomb. All mistakes of a file are reported at once, by line.
"""

import math
import re
import typing
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml

from gate.collector import pause_collector
from gate.errors import FileError, join_errors
from gate.files.codec import decode
from gate.files.disk import load_bytes
from gate.files.entry import VERSION, YamlFile, list_contradictions
from gate.files.invalid import MAX_INTEGER, MAX_INVALID, InvalidValue, format_key, quote_value
from gate.files.schema import list_invalid
from gate.files.structure import get_hints
from gate.files.untrusted import MAX_DEPTH, check_size, decode_text
from gate.sizes import MIB

_T = TypeVar("_T")
_F = TypeVar("_F", bound=YamlFile)
_Mistake = tuple[int, FileError]  # with its line; 0 is the document as a whole

# A registry of 10,000 cases, each a line of 100 bytes: more than any repository has.
MAX_YAML_BYTES = MIB
_TOO_LARGE = "Check that it is the file you mean; models can go into several files, named under `registry`."

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is 10 times as fast
_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_INTEGER_CHARS = 20  # a sign and 19 digits: 64 bits
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


@dataclass(frozen=True, kw_only=True, slots=True)
class YamlDocument:
    source: str
    value: object
    lines: Mapping[str, int]

    def find_line(self, key: str) -> int:
        return find_above(key, self.lines) or 0

    def locate(self, key: str) -> str:
        line = self.find_line(key)
        return f"{self.source}:{line}" if line else self.source

    def refuse(self, key: str, problem: str, fix: str) -> FileError:
        return FileError(self.locate(key), key, problem, fix)


def find_above(key: str, values: Mapping[str, _T]) -> _T | None:
    """The value of a key path, or of its nearest ancestor that has one."""
    while key and key not in values:
        key = key[: max(key.rfind("."), key.rfind("["), 0)]
    return values.get(key)


def parse_yaml(data: bytes, source: str) -> YamlDocument:
    """An empty document is None.

    Raises:
        FileError: With the line: syntax, size, depth, aliases, tags, duplicate keys, NaN.
    """
    document, mistakes = _parse(data, source)
    if mistakes:
        raise _join_mistakes(source, mistakes)
    return document


def _parse(data: bytes, source: str) -> tuple[YamlDocument, list[_Mistake]]:
    check_size(len(data), MAX_YAML_BYTES, source, _TOO_LARGE)
    text = decode_text(data, source)
    try:
        _check_events(text, source)
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise _describe_syntax(error, text, source) from None
    builder = _Builder(source)
    value = None if node is None else builder.build(node, "")
    return YamlDocument(source=source, value=value, lines=builder.lines), builder.mistakes


def load_yaml(file_type: type[_F], path: Path) -> tuple[_F, YamlDocument]:
    """Load one of our own YAML files, a record with a ``version``.

    Raises:
        FileError: With the line: it does not exist, is not YAML, is of another version or does not fit. All
            mistakes are reported, in the order of the lines.
    """
    return decode_yaml(file_type, load_bytes(path, MAX_YAML_BYTES, _TOO_LARGE), str(path))


def decode_yaml(file_type: type[_F], data: bytes, source: str) -> tuple[_F, YamlDocument]:
    """Raises as :func:`load_yaml`."""
    with pause_collector():
        document, mistakes = _parse(data, source)
        plain = _check_version(document)
        invalid = list_invalid(file_type.SCHEMA, plain)
    if not invalid and not mistakes:
        record = decode(file_type, plain, source)
        invalid = list(list_contradictions(record))
        if not invalid:
            return record, document
    elif len(invalid) < MAX_INVALID:  # else others may hold mistakes too
        wrong = [*(item.key for item in invalid), *(mistake.key for _, mistake in mistakes)]
        with suppress(FileError):  # the file lacks what its record needs
            invalid += _find_contradictions(file_type, plain, wrong)
    raise _join_mistakes(source, _locate_invalid(document, invalid, mistakes))


def _find_contradictions(
    file_type: type[YamlFile], plain: Mapping[str, object], wrong: list[str]
) -> Iterator[InvalidValue]:
    def is_wrong(key: str) -> bool:
        return any(other == key or other.startswith((f"{key}.", f"{key}[")) for other in wrong)

    right: dict[str, object] = {"version": VERSION}
    for name, value in plain.items():
        if isinstance(value, dict) and name not in wrong:
            right[name] = {key: item for key, item in value.items() if not is_wrong(name + format_key(key))}
        elif not is_wrong(name):
            right[name] = value
    left_out = plain.keys() - right
    yield from list_contradictions(decode(file_type, right, ""), left_out=left_out)
    for name, hint in get_hints(cast("Hashable", file_type)).items():
        items = plain[name] if name in left_out and name not in wrong else []
        for index, item in enumerate(cast("list[object]", items)):
            if not is_wrong(key := f"{name}[{index}]"):
                yield from list_contradictions(decode(typing.get_args(hint)[0], item, ""), key)


def _check_version(document: YamlDocument) -> dict[str, object]:
    """In another version all other keys may mean something else."""
    source, value = document.source, document.value
    begin = f"Begin the file with 'version: {VERSION}'."
    if value is None:
        raise FileError(source, "", "is empty", begin)
    if not isinstance(value, dict):
        raise FileError(source, "", f"expected keys and values, got {quote_value(value)}", begin)
    version = value.get("version")
    if type(version) is int and version != VERSION:
        problem = f"is {version}; this compile-gate reads version {VERSION}"
        fix = "Install the newest compile-gate." if version > VERSION else f"Write 'version: {VERSION}'."
        raise document.refuse("version", problem, fix)
    return value


def _locate_invalid(
    document: YamlDocument, invalid: list[InvalidValue], mistakes: list[_Mistake]
) -> list[_Mistake]:
    """What the parser refused too is reported once, in its words, with the fix of the key."""
    refused = {(line, mistake.key): mistake for line, mistake in mistakes}
    added: list[_Mistake] = []
    for item in invalid:
        line = document.find_line(item.key)
        if earlier := refused.get((line, item.key)):
            earlier.fix = item.fix
        else:
            added.append((line, document.refuse(item.key, item.problem, item.fix)))
    return [*((line, mistake) for (line, _), mistake in refused.items()), *added]


def _join_mistakes(source: str, mistakes: list[_Mistake]) -> FileError:
    errors = [error for _, error in sorted(mistakes, key=itemgetter(0))[:MAX_INVALID]]
    if len(mistakes) >= MAX_INVALID:
        errors.append(FileError(source, "", "may hold more mistakes than these", "Fix these first."))
    return join_errors(errors)


def _check_events(text: str, source: str) -> None:
    depth = documents = 0
    for event in yaml.parse(text, Loader=_LOADER):
        line = 1 + (event.start_mark.line if event.start_mark else 0)
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            fix = "Write the value out; quote text that begins with & or *."
            raise _refuse(source, line, "uses an anchor or alias (& or *)", fix)
        if getattr(event, "tag", None):
            fix = "Write a plain value; quote text that begins with !."
            raise _refuse(source, line, "uses a tag (!)", fix)
        if depth > MAX_DEPTH:
            raise _refuse(source, line, f"is nested deeper than {MAX_DEPTH} levels", "Write it flatter.")
        if documents > 1:
            raise _refuse(source, line, "holds more than one document (---)", "Split the file.")


def _refuse(source: str, line: int, problem: str, fix: str) -> FileError:
    return FileError(f"{source}:{line}", "", problem, fix)


def _describe_syntax(error: yaml.YAMLError, text: str, source: str) -> FileError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    where = source if mark is None else f"{source}:{mark.line + 1}"
    lines = [] if mark is None else text.splitlines()[mark.line : mark.line + 1]
    if any(re.match(r"\s*\t", line) for line in lines):
        return FileError(where, "", "is indented by a tab", "Indent the line by spaces: YAML takes no tabs.")
    return FileError(where, "", f"is not YAML: {problem}", "Fix the syntax there; check the indentation.")


class _Builder:
    def __init__(self, source: str) -> None:
        self._source = source
        self.lines: dict[str, int] = {}
        self.mistakes: list[_Mistake] = []

    def build(self, node: yaml.Node, path: str) -> object:
        if isinstance(node, yaml.MappingNode):
            return self._build_mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._build_item(item, f"{path}[{index}]") for index, item in enumerate(node.value)]
        return self._build_scalar(node, path)

    def _build_item(self, node: yaml.Node, path: str) -> object:
        self.lines[path] = node.start_mark.line + 1
        return self.build(node, path)

    def _build_mapping(self, node: yaml.MappingNode, path: str) -> dict[str, object]:
        built: dict[str, object] = {}
        for key_node, item in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._note(line, path, "has a key that is not text", "Write a plain key.")
                continue
            key = str(key_node.value)
            inner = (path + format_key(key)).removeprefix(".")
            if key in built:
                problem = f"is given twice, first in line {self.lines[inner]}"
                self._note(line, inner, problem, "Remove one of the two.")
                continue
            self.lines[inner] = line
            built[key] = self.build(item, inner)
        return built

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
            problem = f"expected a finite number of at most 64 bits, got {quote_value(text)}"
            fix = "Write a number that is nearer to zero, or leave it out."
            self._note(node.start_mark.line + 1, path, problem, fix)
            return math.nan  # fits nowhere, so that the schema gives its key's fix
        return number

    def _note(self, line: int, path: str, problem: str, fix: str) -> None:
        if len(self.mistakes) < MAX_INVALID:
            self.mistakes.append((line, FileError(f"{self._source}:{line}", path, problem, fix)))


def _parse_number(text: str) -> int | float | None:
    """``None`` for infinity, NaN and integers beyond 64 bits."""
    if _NOT_FINITE.fullmatch(text):
        return None
    if _INTEGER.fullmatch(text):
        is_huge = len(text) > _INTEGER_CHARS or abs(int(text)) > MAX_INTEGER
        return None if is_huge else int(text)
    number = float(text)
    return number if math.isfinite(number) else None
