"""Identity of the generated code.

Inductor leaves a Python file for each graph in its cache directory; C++ and Triton kernels are strings in it.
Comments name source lines, and includes name paths of the machine: neither is code.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from gate.measure.calls import GRAPH_CACHES
from gate.records.run import CodeIdentity

_NOT_CHOSEN = frozenset({"time_taken_ms", "triton_cache_hash", "found_by_coordesc"})
_MAX_SOURCES_CHARS = 600_000  # of one worker: its result is written anew at every stage
_HASH_CHARS = 16  # 64 bits: compared within one case only
_GRAPH_MARK = "async_compile.wait(globals())"  # in the file of each graph, and in no other
_KERNEL = re.compile(r"^(\w+) = async_compile\.\w+\(.*?'''(.*?)'''", re.MULTILINE | re.DOTALL)
# A statement of a graph's own code: a kernel's launch, or a call of a library or of ATen; no view.
_LAUNCH = re.compile(
    r"^[ \t]+(?:[\w, ]+ = )?(\w+\.run(?=\()|extern_kernels\.\w+|torch\.ops\.(?!inductor\b)\w+\.\w+)",
    re.MULTILINE,
)
_CALLED = ("extern_kernels.", "torch.ops.")  # what is launched and no kernel of the graph's own
# Types as torch, C++ and Triton write them; ``float`` alone stands everywhere in C++.
_DTYPE = re.compile(r"torch\.(?:b?float\d+\w*)|tl\.(?:b?float\w+)|at::(?:BFloat16|Half)|\bdouble\b|\bhalf\b")
_DTYPES = {"at::BFloat16": "bfloat16", "at::Half": "float16", "half": "float16", "double": "float64"}
_NOT_CODE = re.compile(r"\s*(# |#$|#include\b|//)")
# Which kernel a graph calls is code; under which file name it was cached is not.
_CACHE_PATH = re.compile(r"(?:/[\w.+-]+)+/(?=c[a-z2-7]{40,}\b)")


def read_identity(cache: Path) -> CodeIdentity:
    chosen = sorted(map(_normalize_choice, cache.rglob("*.best_config")))  # what tuning chose
    tuned = _compute_hash(chosen) if chosen else ""
    return replace(compute_identity(_read_files(cache)), tuned=tuned)


def read_sources(cache: Path) -> dict[str, str]:
    kept: dict[str, str] = {}
    limit_chars = _MAX_SOURCES_CHARS
    for sources in _group_kernels(_normalize_graphs(_read_files(cache))).values():
        text = "\n\n".join(sorted(sources))
        limit_chars -= len(text)
        if limit_chars >= 0:
            kept[_compute_hash(sorted(sources))] = text
    return kept


def _read_files(cache: Path) -> Iterator[str]:
    return (path.read_text(errors="replace") for path in cache.rglob("*.py"))


def _normalize_choice(path: Path) -> str:
    text = path.read_text(errors="replace")
    try:
        choice = json.loads(text)
    except ValueError:
        return text
    if isinstance(choice, dict):
        choice = {name: choice[name] for name in choice if name not in _NOT_CHOSEN}
    return json.dumps(choice, sort_keys=True)


def compute_identity(files: Iterable[str]) -> CodeIdentity:
    graphs = _normalize_graphs(files)
    if not graphs:
        return CodeIdentity(digest="")
    kernels = _group_kernels(graphs)
    return CodeIdentity(
        digest=_compute_hash(graphs),
        kernels={name: _compute_hash(sorted(sources)) for name, sources in sorted(kernels.items())},
        calls=_count_calls(graphs),
        dtypes=_count_dtypes(graphs),
    )


def _normalize_graphs(files: Iterable[str]) -> list[str]:
    return sorted({normalize_code(text) for text in files if _GRAPH_MARK in text})


def _group_kernels(graphs: Iterable[str]) -> dict[str, set[str]]:
    kernels: dict[str, set[str]] = {}
    for graph in graphs:
        for name, source in list_kernels(graph):
            kernels.setdefault(name, set()).add(source)
    return kernels


def _count_dtypes(graphs: Iterable[str]) -> dict[str, int]:
    words = Counter(word for graph in graphs for word in _DTYPE.findall(graph))
    counts: dict[str, int] = {}
    for word, count in sorted(words.items()):
        name = _DTYPES.get(word.rpartition(".")[2], word.rpartition(".")[2])
        counts[name] = counts.get(name, 0) + count
    return counts


def _count_calls(graphs: Iterable[str]) -> dict[str, int]:
    launched = (name for graph in graphs for name in _LAUNCH.findall(_KERNEL.sub("", graph)))
    return dict(sorted(Counter(name for name in launched if name.startswith(_CALLED)).items()))


def hash_sources(texts: Iterable[str]) -> CodeIdentity:
    sources = [normalize_code(text) for text in texts]
    return CodeIdentity(digest=_compute_hash(sources) if sources else "")


def count_kernels(cache: Path) -> int:
    return sum(len(list_kernels(text)) for text in _read_files(cache) if _GRAPH_MARK in text)


def count_launches(cache: Path) -> int:
    codes = (normalize_code(text) for text in _read_files(cache) if _GRAPH_MARK in text)
    return sum(len(_LAUNCH.findall(_KERNEL.sub("", code))) for code in codes)


def list_kernels(graph: str) -> list[tuple[str, str]]:
    return _KERNEL.findall(graph)


def normalize_code(text: str) -> str:
    lines = (line.rstrip() for line in text.splitlines())
    kept = (line for line in lines if line and not _NOT_CODE.match(line))
    return _CACHE_PATH.sub("", "\n".join(kept))


def _compute_hash(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode())
        digest.update(b"\0")
    return digest.hexdigest()[:_HASH_CHARS]


def list_graph_keys(cache: Path) -> frozenset[Path]:
    files = (path for name in GRAPH_CACHES for path in (cache / name).rglob("*") if path.is_file())
    return frozenset(path.parent for path in files)
