"""Which vector instructions Inductor may use, found out once a run instead of in every worker.

Inductor compiles a probe for each instruction set that the processor has, and every process loads each
of them in a process of its own: seconds that no case's compile needs. Where the primer saw that all of them
pass, it leaves a mark in the cache that seeds each trial's, and workers take Inductor's word for it.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from gate.measure.device.private import find_private

_ISAS = "torch._inductor.cpu_vec_isa"
_MARK = "all.isas"  # in Inductor's cache directory


def list_isas() -> tuple[str, ...]:
    """List the vector instruction sets that Inductor can use here, best first; empty where unknown."""
    list_valid = find_private(_ISAS, "valid_vec_isa_list")
    return tuple(str(isa) for isa in list_valid()) if list_valid else ()


def mark_isas() -> None:
    """Leave the mark for workers if all instruction sets of this processor passed; else none is left."""
    mark = _find_mark()
    if mark is None:
        return
    mark.unlink(missing_ok=True)
    expected = _list_expected()
    if expected and expected == list_isas():
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text("\n".join(expected), encoding="utf-8")


def load_isas() -> None:
    """Make Inductor know its instruction sets: from the mark, or by probing where there is none."""
    mark = _find_mark()
    if mark is not None and mark.is_file():
        importlib.import_module("torch._inductor.config").cpp.vec_isa_ok = True
    list_isas()


def _list_expected() -> tuple[str, ...]:
    """What the list is when every probe passes; empty where this torch does not report."""
    supported, check = find_private(_ISAS, "supported_vec_isa_list"), find_private(_ISAS, "x86_isa_checker")
    flags = check() if check else ()
    isas = tuple(str(isa) for isa in supported or ())
    return tuple(isa for isa in isas if all(flag in flags for flag in isa.split()))


def _find_mark() -> Path | None:
    directory = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    return Path(directory) / _MARK if directory else None
