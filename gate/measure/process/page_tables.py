"""Pages that a forked process has mapped at its start: as many as one of its own would have. Linux only.

A fork maps no page of a library's file, and shares every other page until one side writes to it. Both
cost a page fault each, an eighth of a second in a first compile, that a process of its own has paid by
then. So a forked worker maps at its start what its server had, and copies what is its own.
"""

from __future__ import annotations

import ctypes
import mmap
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

_MAPS = Path("/proc/self/maps")
_PAGE_MAP = Path("/proc/self/pagemap")
_ENTRY_BYTES = 8  # of the page map, one a page
_PRESENT = 1 << 63  # proc(5): the page is in memory
# madvise(2), Linux 5.14 and later: as if each page were read, or written to. Older kernels refuse.
_POPULATE_READ, _POPULATE_WRITE = 22, 23
_OF_THE_KERNEL = ("[vvar]", "[vdso]", "[vsyscall]")


@dataclass(frozen=True, kw_only=True, slots=True)
class PageRange:
    """Pages that follow each other and are in memory; ``start`` and ``size`` in bytes."""

    start: int
    size: int
    advice: int


def list_present() -> tuple[PageRange, ...]:
    """List what this process has mapped; nothing where the system does not tell."""
    try:
        with _PAGE_MAP.open("rb") as page_map:
            return tuple(
                page_range
                for line in _MAPS.read_text(errors="replace").splitlines()
                for page_range in _list_mapping(line, page_map)
            )
    except OSError:
        return ()


def map_pages(ranges: tuple[PageRange, ...]) -> None:
    """Map the pages of ``ranges``, which this process has inherited."""
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for one in ranges:
        libc.madvise(one.start, one.size, one.advice)


def _list_mapping(line: str, page_map: BinaryIO) -> Iterator[PageRange]:
    """List the pages in memory of one line of ``/proc/self/maps``."""
    addresses, rights, *_ = fields = line.split()
    if not rights.startswith("r") or rights.endswith("s") or fields[-1] in _OF_THE_KERNEL:
        return
    first, last = (int(address, 16) // mmap.PAGESIZE for address in addresses.split("-"))
    page_map.seek(first * _ENTRY_BYTES)
    entries = array("Q", page_map.read((last - first) * _ENTRY_BYTES))
    page = first
    for is_present, group in groupby(entries, lambda entry: entry >= _PRESENT):
        pages = sum(1 for _ in group)
        if is_present:
            advice = _POPULATE_WRITE if "w" in rights else _POPULATE_READ
            yield PageRange(start=page * mmap.PAGESIZE, size=pages * mmap.PAGESIZE, advice=advice)
        page += pages
