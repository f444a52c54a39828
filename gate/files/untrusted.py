"""The border where bytes of somebody else become plain values.

Run and verdict files travel as artifacts of pull requests, so they are hostile: size and depth are bounded,
and duplicate keys and broken UTF-8 are refused. The YAML border is :mod:`gate.files.yaml_in`.
"""

import json
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import PurePath

from gate.errors import FileError
from gate.files.invalid import quote_value
from gate.sizes import GIB, KIB, MIB

# Of what is parsed at once: nothing that the gate writes comes near this.
MAX_JSON_BYTES = 128 * MIB
# Of a file whose long lists are parsed item by item: 20,000 cases x 10 trials of 4 kB are 800 MB.
MAX_ROWS_BYTES = GIB
MAX_LINES = 1_000_000  # of such a file: an item of 30 bytes takes up to 1 kB of memory
# Our deepest record is a run's trial conditions, 6 levels; a factory's arguments may add some.
MAX_DEPTH = 32
# An empty list takes 3 bytes as JSON and 64 in memory, a key with its number 6 and 200, so that a few
# megabytes of them would become hundreds. Our large files have a list or a mapping in 100 bytes and a
# value in 15 and more; small files may be as they like.
_BYTES_A_CONTAINER, _FREE_CONTAINERS = 32, 10_000
_BYTES_A_VALUE, _FREE_VALUES = 8, 100_000
_CHUNK_BYTES = 256 * KIB
# What a commit holds of a file that Git LFS keeps: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'[]{},"'))
_ALIKE = bytes.maketrans(b"{}", b"[]")
_STEP = {ord("["): 1, ord("]"): -1}
ORIGIN_FIX = "compile-gate writes no such file: check its origin, or record it again."


def check_size(size: int, limit: int, source: str, fix: str = "") -> None:
    """``fix`` is for a file that people write.

    Raises:
        FileError: There are more than ``limit`` bytes.
    """
    if size > limit:
        problem = f"is larger than {limit:,} bytes"
        raise FileError(source, "", problem, fix or "compile-gate writes no such file: check its origin.")


def decode_text(data: bytes, source: str) -> str:
    """With or without a byte-order mark.

    Raises:
        FileError: The bytes are not UTF-8, or a pointer of Git LFS.
    """
    if data.startswith(_LFS_POINTER):
        path = PurePath(source)
        pattern = "baselines/**" if "baselines" in path.parts else path.name
        kept = f"add `{pattern} -filter -diff -merge text` to .gitattributes, then record or commit it again"
        fix = f"In a working tree `git lfs pull` gets it. For good, {kept}."
        raise FileError(source, "", "is a pointer of Git LFS, which the gate does not follow", fix)
    try:
        return data.decode("utf-8-sig" if data.startswith(BOM_UTF8) else "utf-8")
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 text (byte {error.start})"
        raise FileError(source, "", problem, "Write the file again, or save it as UTF-8.") from None


def parse_json(data: bytes, source: str) -> object:
    """Parse hostile JSON.

    NaN, infinities, also by overflow (``1e999``), and integers beyond 64 bits pass here:
    :func:`gate.files.codec.decode` refuses them and can name their key.

    Raises:
        FileError: Too large, too deep, not UTF-8, cut short, duplicate keys or not JSON.
    """
    check_size(len(data), MAX_JSON_BYTES, source)
    text = decode_text(data, source)
    _check_shape(data, source)
    try:
        return _DECODER.decode(text)
    except FileError as error:
        raise FileError(source, error.key, error.problem, error.fix) from None
    except json.JSONDecodeError as error:
        raise _describe_syntax(error, text, source) from None
    except (ValueError, RecursionError) as error:
        raise FileError(source, "", str(error).split(";")[0], ORIGIN_FIX) from None


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """How deep lists and mappings nest, and how many of them and their items there are."""

    depth: int
    containers: int
    values: int  # less one for each list or mapping that is not empty


def measure_shape(data: bytes) -> Iterator[Shape]:
    """Chunk by chunk, without recursion; the last shape is of the whole."""
    # Without escapes, quotes open and close by turns: every other piece lies outside of strings.
    unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data
    deepest = depth = containers = values = quotes = 0
    for start in range(0, len(unescaped), _CHUNK_BYTES):
        structure = unescaped[start : start + _CHUNK_BYTES].translate(_ALIKE, delete=_NOT_STRUCTURE)
        # Where a string holds no structure its quotes are neighbours, and the others still take turns.
        pieces = structure.replace(b'""', b"").split(b'"')
        outside = b"".join(pieces[quotes % 2 :: 2])
        quotes += structure.count(b'"')
        brackets = outside.replace(b",", b"")
        values += len(outside) - len(brackets)
        containers += brackets.count(b"[")
        left, levels = brackets, 0
        while left and levels < MAX_DEPTH:  # the innermost are taken away
            left, levels = left.replace(b"[]", b""), levels + 1
        depths = [depth + levels, depth]
        if left:  # is deeper, or goes on in another chunk
            depths = list(accumulate(map(_STEP.__getitem__, brackets), initial=depth))
        deepest, depth = max(deepest, *depths), depths[-1]
        yield Shape(depth=deepest, containers=containers, values=values)


def _check_shape(data: bytes, source: str) -> None:
    for shape in measure_shape(data):
        if shape.depth > MAX_DEPTH:
            raise FileError(source, "", f"is nested deeper than {MAX_DEPTH} levels", ORIGIN_FIX)
        is_dense = (
            shape.containers > _FREE_CONTAINERS + len(data) // _BYTES_A_CONTAINER
            or shape.values > _FREE_VALUES + len(data) // _BYTES_A_VALUE
        )
        if is_dense:
            raise FileError(source, "", "holds more values than any file of ours of its size", ORIGIN_FIX)


def _build_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    built = dict(pairs)
    if len(built) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise FileError("", "", f"has the key {quote_value(twice)} twice", ORIGIN_FIX)
    return built


_DECODER = json.JSONDecoder(object_pairs_hook=_build_object)


def _describe_syntax(error: json.JSONDecodeError, text: str, source: str) -> FileError:
    if not text.strip():
        return FileError(source, "", "is empty", "Record it again.")
    if not text[error.pos :].strip() or error.msg.startswith("Unterminated"):
        problem = f"ends in the middle (line {error.lineno}): it was cut short"
        return FileError(source, "", problem, "Copy or record it again.")
    problem = f"is not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
    return FileError(source, "", problem, "Fix the syntax there, or record the file again.")
