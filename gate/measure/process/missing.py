"""What an exception of a primer says that the machine lacks. Without torch, which may be what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gate.errors import GateError
from gate.records.protocol import Prerequisite

# In the words of the compiler, of Inductor and of the driver, none of which has an exception for it.
_SAID = {
    Prerequisite.CXX_COMPILER: re.compile(r"InvalidCxxCompiler|C\+\+ compiler"),
    Prerequisite.PYTHON_HEADERS: re.compile(r"Python\.h"),
    Prerequisite.DEVICE: re.compile(r"CUDA|NVIDIA|device ordinal|[Nn]o such device|Found no"),
}


def find_missing(error: BaseException) -> Prerequisite | None:
    """Find what a machine lacks where a primer ends with ``error``; None where that is not the reason."""
    chain = list(_list_chain(error))
    if any(isinstance(one, ModuleNotFoundError) and one.name == "torch" for one in chain):
        return Prerequisite.TORCH
    # The gate's own words around them name a compiler, or CUDA, whatever it is that does not work.
    foreign = [one for one in chain if not isinstance(one, GateError)]
    said = "\n".join(f"{type(one).__name__}: {one}" for one in foreign)
    return next((part for part, pattern in _SAID.items() if pattern.search(said)), None)


def _list_chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
