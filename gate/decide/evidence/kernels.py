"""Which kernels of two identities belong together, and what operators each is made of.

Inductor names a kernel by the operators that it fuses and a number: ``cpp_fused_add_relu_3``. A kernel more
changes all numbers behind it, so that kernels are matched by their code first, and by their name without
the number after.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_NUMBER = re.compile(r"_\d+$")
_FUSED = re.compile(r"^(?:cpp|mps|pallas|triton(?:_[a-z]{3,4})?)_fused_?")


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelPair:
    """A kernel of each side that stand for each other; ``""`` where a side has none."""

    before: str = ""
    after: str = ""


def match_kernels(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[KernelPair, ...]:
    """Match the kernels, name to hash, that do not have the same code on both sides."""
    same = set(before.values()) & set(after.values())
    old = [name for name, code in before.items() if code not in same]
    new = [name for name, code in after.items() if code not in same]
    pairs = []
    for key in (str, name_stem):
        for name in list(new):
            match = next((one for one in old if key(one) == key(name)), None)
            if match is not None:
                pairs.append(KernelPair(before=match, after=name))
                old.remove(match)
                new.remove(name)
    gone = [KernelPair(before=name) for name in old]
    return (*pairs, *(KernelPair(after=name) for name in new), *gone)


def name_stem(kernel: str) -> str:
    """Name what a kernel does, without its number."""
    return _NUMBER.sub("", kernel)


def name_operators(kernel: str) -> str:
    """Name the operators that a kernel fuses, joined as in its name; ``""`` where it tells none."""
    stem = name_stem(kernel)
    return _FUSED.sub("", stem) if _FUSED.match(stem) else ""


def count_words(kernels: Iterable[str]) -> dict[str, int]:
    """Count the words of operators in the names of kernels."""
    counts: dict[str, int] = {}
    for kernel in kernels:
        for word in filter(None, name_operators(kernel).split("_")):
            counts[word] = counts.get(word, 0) + 1
    return counts
