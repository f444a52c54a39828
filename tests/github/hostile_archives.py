"""Malicious archives: name -> bytes. Each is made in memory when it is asked for."""

import io
import json
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

from records import CASES, make_archive, make_passing, make_zip

from gate.files.codec import SHOWN
from gate.publish.shown import SHOWN_FILE, make_shown
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import CaseFailure, FailureKind
from gate.records.verdict import Cause, PairBase, Tally

MEMBER = SHOWN_FILE
MIB = 1024 * 1024
# What is made hostile: a pass, settled side by side.
CASE = CASES[0].id
BREAK = Fact(code=Code.GRAPH_BREAK, names=name_words(reason="print", location="bench/bert.py:12"))
CRASH = Fact(code=Code.NO_END, numbers={"wall_s": 400, "cpu_s": 300}, names=name_words(role="warm"))
HONEST = make_passing(
    base=PairBase(label="main (bbbbbbb)", commit="b" * 40),
    tally=Tally(trials=9, pairs=3, paired_cases=1),
    causes=(Cause(case_id=CASE, fact=BREAK),),
    failures=(CaseFailure(case_id=CASE, trial=1, kind=FailureKind.HANG, stage="rounds", fact=CRASH),),
)


def make_member(**fields: Any) -> bytes:
    """An archive whose one member has odd properties."""
    return make_with(encode_verdict(), **fields)


def make_with(content: bytes, compression: int = zipfile.ZIP_DEFLATED, **fields: Any) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        member = zipfile.ZipInfo(MEMBER)
        for name, value in fields.items():
            setattr(member, name, value)
        archive.writestr(member, content, compression)
    return stream.getvalue()


def encode_verdict() -> bytes:
    return SHOWN.encode(make_shown(HONEST)).encode()


def list_texts(value: object, path: str = "") -> Iterator[str]:
    """The paths of all texts of a plain value."""
    if isinstance(value, str):
        yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from list_texts(part, f"{path}.{key}".removeprefix("."))


def make_edited(edit: Callable[[dict[str, Any]], None]) -> bytes:
    """A verdict with something changed in its plain form."""
    plain = json.loads(encode_verdict())
    edit(plain)
    return make_zip({MEMBER: json.dumps(plain).encode()})


def put(path: str, value: object) -> Callable[[dict[str, Any]], None]:
    """Put a value at a path such as "comparisons.0.change.centre"."""

    def edit(plain: dict[str, Any]) -> None:
        target: Any = plain
        *parents, last = [int(part) if part.isdecimal() else part for part in path.split(".")]
        for part in parents:
            target = target[part]
        target[last] = value

    return edit


def make_bomb() -> bytes:
    """256 MiB of zeros in 260 kB: 1000 to 1."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(MEMBER, "w") as member:
        for _ in range(16):
            member.write(b"\0" * (16 * MIB))
    return stream.getvalue()


def make_lying_bomb() -> bytes:
    """A bomb that declares to be small."""
    content = bytearray(make_with(b"\0" * (64 * MIB)))
    at = content.rindex(b"PK\x01\x02")
    content[at + 24 : at + 28] = struct.pack("<I", 1000)
    return bytes(content)


def make_duplicate() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(MEMBER, encode_verdict())
        second = zipfile.ZipInfo("shown.jsoN")
        archive.writestr(second, encode_verdict())
    return stream.getvalue().replace(b"shown.jsoN", b"shown.json")


def make_many_members() -> bytes:
    return make_zip({f"{index}": b"" for index in range(5000)} | {MEMBER: encode_verdict()})


def make_mismatched_names() -> bytes:
    """The local header names another file than the directory does."""
    return make_member().replace(b"shown.json", b"shown.jsoX", 1)


def make_cut(share: float) -> bytes:
    archive = make_archive(make_passing())
    return archive[: int(len(archive) * share)]


def make_broken_stream() -> bytes:
    content = bytearray(make_member())
    for index in range(60, 120):
        content[index] ^= 0xFF
    return bytes(content)


_DEEP = b'{"schema": "compile-gate/shown/1", "cases": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
_HUGE = b'{"schema": "compile-gate/shown/1", "trials": ' + b"9" * 4301 + b"}"
_TWICE = b'{"schema": "compile-gate/shown/1", "trials": 1, "trials": 2}'
_KEYS = b'{"schema": "compile-gate/shown/1", ' + b", ".join(b'"k%d": 0' % i for i in range(200_000)) + b"}"

_START = b'{"schema": "compile-gate/shown/1", '
_LETTERS = bytes(range(97, 123)) * (4 * MIB // 26 - 8)  # what a comparison of words takes longest for
_DENSE = b'{"a":1.5,"b":2.5,"c":3.5      },'  # 32 bytes: more lists and values in them are refused at once

# A few kilobytes each that take much time or memory of whoever is careless with them.
COSTLY: dict[str, Callable[[], bytes]] = {
    "key of 4 MB": lambda: make_with(_START + b'"' + _LETTERS + b'": 1}'),
    "word of 4 MB": lambda: make_with(_START + b'"outcome": "' + _LETTERS + b'"}'),
    "1,000,000 empty lists": lambda: make_with(_START + b'"notes": [' + b"[]," * 1_000_000 + b"[]]}"),
    "500,000 small mappings": lambda: make_with(_START + b'"notes": [' + b'{"a":1},' * 500_000 + b"1]}"),
    "800,000 words": lambda: make_with(_START + b'"notes": [' + b'"ab",' * 800_000 + b"1]}"),
    "a million numbers": lambda: make_with(_START + b'"notes": [' + b"1.5," * 1_000_000 + b"1]}"),
    "as dense as is read": lambda: make_with(_START + b'"notes": [' + _DENSE * (500 * 1024) + b"{}]}"),
    "two million quotes": lambda: make_with(_START + b'"notes": [' + b'"",' * 1_300_000 + b'""]}'),
}
ARCHIVES: dict[str, Callable[[], bytes]] = {
    **COSTLY,
    "empty": lambda: b"",
    "text": lambda: b"not a zip",
    "only an end": lambda: b"PK\x05\x06" + b"\0" * 18,
    "no member": lambda: make_zip({"report.md": b"x"}),
    "member in a folder": lambda: make_zip({"out/shown.json": encode_verdict()}),
    "zip slip": lambda: make_zip({"../../shown.json": encode_verdict(), "/shown.json": b"{}"}),
    "other case": lambda: make_zip({"SHOWN.JSON": encode_verdict()}),
    "duplicate member": make_duplicate,
    "symlink": lambda: make_member(external_attr=(stat.S_IFLNK | 0o777) << 16),
    "directory": lambda: make_member(external_attr=(stat.S_IFDIR | 0o755) << 16),
    "device": lambda: make_member(external_attr=(stat.S_IFCHR | 0o644) << 16),
    "fifo": lambda: make_member(external_attr=(stat.S_IFIFO | 0o644) << 16),
    "bzip2": lambda: make_with(encode_verdict(), zipfile.ZIP_BZIP2),
    "lzma": lambda: make_with(encode_verdict(), zipfile.ZIP_LZMA),
    "encrypted": lambda: make_member().replace(
        b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"
    ),
    "bomb": make_bomb,
    "lying bomb": make_lying_bomb,
    "too large": lambda: make_with(b" " * (16 * MIB + 1)),
    "many members": make_many_members,
    "mismatched names": make_mismatched_names,
    "cut in half": lambda: make_cut(0.5),
    "cut at the end": lambda: make_cut(0.99),
    "broken stream": make_broken_stream,
    "no JSON": lambda: make_with(b"\x00\x01"),
    "empty JSON": lambda: make_with(b""),
    "HTML": lambda: make_with(b"<html></html>"),
    "list": lambda: make_with(b"[]"),
    "no schema": lambda: make_with(b"{}"),
    "a run": lambda: make_with(b'{"schema": "compile-gate/run/1"}'),
    "newer schema": lambda: make_with(b'{"schema": "compile-gate/shown/99"}'),
    "deep": lambda: make_with(_DEEP),
    "4,301 digits": lambda: make_with(_HUGE),
    "duplicate keys": lambda: make_with(_TWICE),
    "200,000 keys": lambda: make_with(_KEYS),
    "UTF-16": lambda: make_with(encode_verdict().decode().encode("utf-16")),
    "broken UTF-8": lambda: make_with(encode_verdict().replace(b"PASS", b"\xff\xfe\xfd\xfc")),
    "NaN": lambda: make_edited(put("wall_s", float("nan"))),
    "infinity": lambda: make_edited(put("comparisons.0.change.centre", float("inf"))),
    "overflow": lambda: make_with(encode_verdict().replace(b'"wall_s": 312.0', b'"wall_s": 1e999')),
    "huge number": lambda: make_edited(put("comparisons.0.candidate.centre", 1e300)),
    "huge change": lambda: make_edited(put("comparisons.0.change.detectable", -1e20)),
    "huge trial": lambda: make_edited(put("trials", 2**80)),
    "negative trials": lambda: make_edited(put("trials", -9)),
    "negative time": lambda: make_edited(put("wall_s", -1.0)),
    "negative overhead": lambda: make_edited(put("overhead_s", -0.5)),
    "negative pairs": lambda: make_edited(put("comparisons.0.pairs", -3)),
    "negative need of pairs": lambda: make_edited(put("comparisons.0.more_pairs", -3)),
    "negative tally": lambda: make_edited(put("tally.cleared", -1)),
    "more disturbed than measured": lambda: make_edited(put("tally.disturbed_pairs", 4)),
    "more disturbed trials than trials": lambda: make_edited(put("tally.disturbed_trials", 10)),
    "negative noise": lambda: make_edited(put("comparisons.0.candidate.noise", -0.1)),
    "unknown key": lambda: make_edited(put("script", "<script>")),
    "unknown nested key": lambda: make_edited(put("comparisons.0.note", "@everyone")),
    "unknown metric": lambda: make_edited(put("comparisons.0.metric", "![x](https://evil.example)")),
    "unknown status": lambda: make_edited(put("comparisons.0.status", "<b>")),
    "unknown outcome": lambda: make_edited(put("outcome", "GREAT")),
    "true for a number": lambda: make_edited(put("trials", True)),
    "number of nobody": lambda: make_edited(put("causes.0.fact.numbers", {"<b>": 1})),
    "name of nobody": lambda: make_edited(put("causes.0.fact.names", {"reason": ["buy this"]})),
    "two places": lambda: make_edited(put("causes.0.fact.names.location", ["a.py:1", "b.py:2"])),
    "a place outside": lambda: make_edited(put("causes.0.fact.names.location.0", "../../etc/passwd.py:1")),
    "note for a remark": lambda: make_edited(put("comparisons.0.remarks.0.code", "pairs")),
    "text for a number": lambda: make_edited(put("wall_s", "312")),
    "null": lambda: make_edited(put("comparisons", None)),
    "lone surrogate": lambda: make_edited(put("environments.0", "\ud800")),
    "pass over a regression": lambda: make_edited(put("comparisons.0.status", "REGRESSED")),
    "case of nobody": lambda: make_edited(put("comparisons.0.case_id", "x/y")),
    "case twice": lambda: make_edited(lambda plain: plain["cases"].append(plain["cases"][0])),
    "row twice": lambda: make_edited(lambda plain: plain["comparisons"].append(plain["comparisons"][0])),
}

_INJECTIONS = (
    "@octocat @octo-org/everyone",
    "#1 GH-1 octo-org/models#1",
    "![x](https://evil.example/x.png)",
    "[click](https://evil.example)",
    "https://evil.example www.evil.example",
    "<img src=x onerror=alert(1)><script>alert(1)</script>",
    f"<!-- compile-gate key=default run=9999999999 attempt=1 head={'a' * 40} -->",
    "| a | b |\n| - | - |\n| c | d |",
    "```\nfence\n```",
    "</details></table>",
    "::error::injected\n::set-output name=verdict::PASS",
    "a\r\nb\x00\x1b[31m\u202e\u2066",
    "${{ github.token }} $(id) `id` ; rm -rf /",
    "\u0130\ufeff\u200b" * 50,
    "x" * 50_000,
)
# The honest record with an attack in the place of one of its texts.
INJECTED: dict[str, Callable[[], bytes]] = {
    f"{path}: {text[:20]!r}": (lambda path=path, text=text: make_edited(put(path, text)))  # type: ignore[misc]
    for path in list_texts(json.loads(encode_verdict()))
    for text in _INJECTIONS
    if path.partition(".")[0] != "comparisons" or path.startswith("comparisons.0.")  # all rows are alike
}
MARKS = (
    "evil",
    "octocat",
    "everyone",
    "script",
    "onerror",
    "fence",
    "injected",
    "9999999999",
    "rm -rf",
    "xxxx",
)
