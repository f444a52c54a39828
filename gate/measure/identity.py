"""Identity of the generated code: equal across processes and machines, different when the code is.

Inductor leaves a Python file a graph in its cache directory; the C++ and Triton kernels stand in it as
strings. Comments name source lines and includes name places on the machine: neither is code.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from gate.records import CodeIdentity

_NOT_CHOSEN = frozenset({"time_taken_ms", "triton_cache_hash", "found_by_coordesc"})
_HASH_CHARS = 16  # 64 bits: compared within one case only
_GRAPH_MARK = "async_compile.wait(globals())"  # in the file of each graph, and in no other
_KERNEL = re.compile(r"^(\w+) = async_compile\.\w+\(.*?'''(.*?)'''", re.MULTILINE | re.DOTALL)
_NOT_CODE = re.compile(r"\s*(# |#$|#include\b|//)")
# Which kernel a graph calls is code; under which file name it was cached is not.
_CACHE_PATH = re.compile(r"(?:/[\w.+-]+)+/(?=c[a-z2-7]{40,}\b)")


def read_identity(cache: Path) -> CodeIdentity:
    """Read the identity of all graphs in Inductor's cache directory; empty when there are none."""
    identity = compute_identity(path.read_text(errors="replace") for path in cache.rglob("*.py"))
    return replace(identity, tuned=_read_tuned(cache))


def _read_tuned(cache: Path) -> str:
    """Read the identity of what tuning chose, as Inductor keeps it beside the kernels; empty for nothing."""
    chosen = sorted(map(_normalize_choice, cache.rglob("*.best_config")))
    return _compute_hash(chosen) if chosen else ""


def _normalize_choice(path: Path) -> str:
    """A configuration without how long it took and what its binary's hash was: neither was chosen."""
    text = path.read_text(errors="replace")
    try:
        choice = json.loads(text)
    except ValueError:
        return text
    kept = (
        {name: choice[name] for name in choice if name not in _NOT_CHOSEN}
        if isinstance(choice, dict)
        else choice
    )
    return json.dumps(kept, sort_keys=True)


def compute_identity(files: Iterable[str]) -> CodeIdentity:
    """Compute the identity of generated Python files, in any order; other files are left out."""
    graphs = sorted({normalize_code(text) for text in files if _GRAPH_MARK in text})
    if not graphs:
        return CodeIdentity(digest="")
    kernels: dict[str, set[str]] = {}
    for graph in graphs:
        for name, source in list_kernels(graph):
            kernels.setdefault(name, set()).add(source)
    return CodeIdentity(
        digest=_compute_hash(graphs),
        kernels={name: _compute_hash(sorted(sources)) for name, sources in sorted(kernels.items())},
    )


def count_kernels(cache: Path) -> int:
    """Count the kernels in the graphs in Inductor's cache directory, each as often as it stands there."""
    texts = (path.read_text(errors="replace") for path in cache.rglob("*.py"))
    return sum(1 for text in texts if _GRAPH_MARK in text for _ in list_kernels(text))


def list_kernels(graph: str) -> Iterator[tuple[str, str]]:
    """List the names and sources of the kernels that a graph's Python file holds."""
    for match in _KERNEL.finditer(graph):
        yield match.group(1), match.group(2)


def normalize_code(text: str) -> str:
    """Leave out comments, includes and paths of a cache, none of which is code."""
    lines = (line.rstrip() for line in text.splitlines())
    kept = (line for line in lines if line and not _NOT_CODE.match(line))
    return _CACHE_PATH.sub("", "\n".join(kept))


def _compute_hash(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode())
        digest.update(b"\0")
    return digest.hexdigest()[:_HASH_CHARS]
