"""YAML to plain values and back: the core schema of YAML 1.2, and nothing that surprises.

``no`` and ``on`` are text, ``1e-5`` is a number, a date is text. Anchors, aliases, tags, several
documents and duplicate keys are refused, which rules out every bomb. Errors name the line, and all
the mistakes of a file that can be parsed are told at once.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import yaml

from gate.errors import FileError, join_errors
from gate.files.disk import load_bytes
from gate.files.entry import VERSION
from gate.files.structure import fit
from gate.files.untrusted import (
    MAX_DEPTH,
    MAX_INTEGER,
    MAX_INVALID,
    ValidationError,
    check_size,
    decode_text,
    format_key,
    format_value,
)

_T = TypeVar("_T")
_Mistake = tuple[int, FileError]  # with its line; 0 is the document as a whole

# A registry of 10,000 cases, each a line of 100 bytes: more than any repository has.
MAX_YAML_BYTES = 1024 * 1024
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
    """A parsed document: its plain value, and the line of every key path in it."""

    source: str
    value: object
    lines: Mapping[str, int]

    def find_line(self, key: str) -> int:
        """Find the line of a key path or of its nearest ancestor; 0 when there is none."""
        return find_above(key, self.lines) or 0

    def locate(self, key: str) -> str:
        """Say where a key or its nearest ancestor is written: ``gate.yml:12``, or the file."""
        line = self.find_line(key)
        return f"{self.source}:{line}" if line else self.source

    def refuse(self, key: str, problem: str, fix: str) -> FileError:
        """Make the error of a key of this document, with its line."""
        return FileError(self.locate(key), key, problem, fix)


def find_above(key: str, places: Mapping[str, _T]) -> _T | None:
    """Find the place of a key path, or of its nearest ancestor that has one."""
    while key and key not in places:
        key = key[: max(key.rfind("."), key.rfind("["), 0)]
    return places.get(key)


def parse_yaml(data: bytes, source: str) -> YamlDocument:
    """Parse YAML; an empty document is None.

    Raises:
        FileError: With the line: syntax, size, depth, aliases, tags, duplicate keys, NaN.
    """
    document, mistakes = _parse(data, source)
    if mistakes:
        raise _join_mistakes(source, mistakes)
    return document


def _parse(data: bytes, source: str) -> tuple[YamlDocument, list[_Mistake]]:
    """Parse, and list the values that cannot be taken; what is no YAML at all raises."""
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


def load_yaml(file_type: type[_T], path: Path) -> tuple[_T, YamlDocument]:
    """Load one of our own YAML files, a record with a ``version``.

    Raises:
        FileError: With the line: it does not exist, is not YAML, is of another version or does not
            fit. All that does not fit is told, in the order of the lines.
    """
    return decode_yaml(file_type, load_bytes(path, MAX_YAML_BYTES, _TOO_LARGE), str(path))


def decode_yaml(file_type: type[_T], data: bytes, source: str) -> tuple[_T, YamlDocument]:
    """Decode the bytes of one of our own YAML files; raises as :func:`load_yaml`."""
    document, mistakes = _parse(data, source)
    _check_version(document)
    try:
        record = fit(file_type, document.value)
    except ValidationError as error:
        raise _join_mistakes(source, _locate_invalid(document, error, mistakes)) from None
    if mistakes:
        raise _join_mistakes(source, mistakes)
    return record, document


def _check_version(document: YamlDocument) -> None:
    """Refuse another version at once: all its other keys may mean something else."""
    source, value = document.source, document.value
    begin = f"Begin the file with 'version: {VERSION}'."
    if value is None:
        raise FileError(source, "", "is empty", begin)
    if not isinstance(value, dict):
        raise FileError(source, "", f"expected keys and values, got {format_value(value)}", begin)
    version = value.get("version")
    if type(version) is int and version != VERSION:
        problem = f"is {version}; this compile-gate reads version {VERSION}"
        fix = "Install the newest compile-gate." if version > VERSION else f"Write 'version: {VERSION}'."
        raise document.refuse("version", problem, fix)


def _locate_invalid(document: YamlDocument, error: ValidationError, known: list[_Mistake]) -> list[_Mistake]:
    """Find the line of each invalid value and add them to what the parser refused.

    What both refused is told once: in the parser's words, which quote the file, and with the fix of the
    key, which knows what belongs there.
    """
    refused = {(line, mistake.key): mistake for line, mistake in known}
    found: list[_Mistake] = []
    for invalid in error.found:
        key = invalid.render_path().removeprefix(".")
        line = document.find_line(key)
        if earlier := refused.get((line, key)):
            earlier.fix = invalid.fix
        else:
            found.append((line, document.refuse(key, invalid.problem, invalid.fix)))
    return [*((line, told) for (line, _), told in refused.items()), *found]


def _join_mistakes(source: str, mistakes: list[_Mistake]) -> FileError:
    """Join mistakes into one error, in the order of their lines."""
    errors = [error for _, error in sorted(mistakes, key=itemgetter(0))[:MAX_INVALID]]
    if len(mistakes) >= MAX_INVALID:
        errors.append(FileError(source, "", "may hold more mistakes than these", "Fix these first."))
    return join_errors(errors)


def _check_events(text: str, source: str) -> None:
    """Refuse what could blow up or surprise, before a tree is built."""
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
    """Turns nodes into plain values, notes the line of each and what cannot be taken."""

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
            problem = f"expected a finite number of at most 64 bits, got {format_value(text)}"
            fix = "Write a number that is nearer to zero, or leave it out."
            self._note(node.start_mark.line + 1, path, problem, fix)
            return math.nan  # fits nowhere, so that whoever gets it knows of something wrong there
        return number

    def _note(self, line: int, path: str, problem: str, fix: str) -> None:
        if len(self.mistakes) < MAX_INVALID:
            self.mistakes.append((line, FileError(f"{self._source}:{line}", path, problem, fix)))


def _parse_number(text: str) -> int | float | None:
    """Parse what looks like a number; None when it is infinite, NaN or an integer beyond 64 bits."""
    if _NOT_FINITE.fullmatch(text):
        return None
    if _INTEGER.fullmatch(text):
        integer = int(text) if len(text) <= _INTEGER_CHARS else MAX_INTEGER + 1
        return integer if abs(integer) <= MAX_INTEGER else None
    number = float(text)
    return number if math.isfinite(number) else None


# Plain in YAML, and text to every YAML reader once the words below are left out.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*|[0-9]+(\.[0-9]+)?%")
_PLAIN_WITH_COLON = re.compile(r"[A-Za-z_][A-Za-z0-9_./:-]*[A-Za-z0-9_]")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
# Characters that JSON may write as they are and YAML may not, or would fold.
_NOT_PRINTABLE = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")


def write_scalar(value: object, *, inside: bool = False) -> str:
    """Render a plain value in YAML's flow style; ``inside`` a list or mapping, a colon needs quotes."""
    if isinstance(value, dict):
        pairs = (
            f"{write_scalar(key, inside=True)}: {write_scalar(value[key], inside=True)}" for key in value
        )
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(write_scalar(item, inside=True) for item in value) + "]"
    if isinstance(value, str) and _is_plain(value, inside=inside):
        return value
    if isinstance(value, float):
        return _render_float(value)
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _NOT_PRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _is_plain(text: str, *, inside: bool) -> bool:
    if text.lower() in _WORDS:
        return False
    return bool(_PLAIN.fullmatch(text) or (not inside and _PLAIN_WITH_COLON.fullmatch(text)))


def _render_float(value: float) -> str:
    """YAML 1.1 readers take ``2e-05`` for text: give it the point that they look for."""
    text = repr(value)
    return text.replace("e", ".0e") if "e" in text and "." not in text else text
