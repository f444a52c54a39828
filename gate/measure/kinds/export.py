"""A package of torch.export and AOTInductor: built by the first process, loaded by the second."""

from __future__ import annotations

import importlib
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from gate.errors import UsageError
from gate.measure.compiler import identity
from gate.measure.compiler.graph import GraphReport, find_cache
from gate.measure.kinds.protocol import Protocol, Seen
from gate.measure.timing.rounds import Step
from gate.measure.workload.build import TORCH_DTYPES, Function, Subject
from gate.records import Case, CodeIdentity, Metric

# The definition of a generated kernel, in the C++ of a package.
_KERNEL = re.compile(r"^\s*(?:extern \"C\"\s*)?(?:static )?void\s+((?:cpp|triton)_\w+)\(", re.MULTILINE)
_SOURCE = (".cpp", ".cu")


class Export(Protocol):
    """The compiled call is the package's; weights are in it, so other ones need another package."""

    can_redraw = False
    shares_state = False

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._packages: list[Package] = []

    def compile(self, subject: Subject) -> Function:
        """Load the package at the first call, and build it before where there is none."""
        package = self.make_package(subject)
        self._packages.append(package)
        return self.spread(package)

    def make_package(self, subject: Subject) -> Package:
        """Make the package of a subject; nothing is built or loaded before its first call."""
        return Package(subject)

    def list_packages(self) -> Iterator[Path]:
        """List the packages that there are."""
        return (package.path for package in self._packages if package.path.is_file())

    def check_compiled(self, report: GraphReport) -> None:
        """Check that there is a package; raises ``UsageError`` where there is none."""
        if not any(self.list_packages()):
            raise UsageError("no package was built", "Remove `kind: export` from the case.")

    def count_misses(self, report: GraphReport) -> int:
        """Count the packages that had to be built."""
        return sum(package.is_built for package in self._packages)

    def identify(self, cache: Path) -> CodeIdentity:
        """Read the identity of the packages' C++."""
        return identity.hash_sources(_read_sources(cache))

    def count_kernels(self, cache: Path) -> int:
        """Count the kernels in the packages' C++."""
        return sum(len(set(_KERNEL.findall(text))) for text in _read_sources(cache))

    def observe(self, subject: Subject, compiled: Function, step: Step) -> Seen:
        """See how large the package is, and what building and loading it took."""
        first = self._packages[0]
        return Seen(samples={Metric.PACKAGE_BYTES: (first.path.stat().st_size,)}, parts_s=first.parts_s)


PROTOCOL = Export


class Package:
    """A function that loads its package at the first call: here one of AOTInductor."""

    suffix = ".pt2"

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        dtype = next(
            (tensor.dtype for tensor in subject.list_state() if tensor.is_floating_point()),
            TORCH_DTYPES[subject.case.dtype],
        )
        self.path = find_cache() / f"package-{str(dtype).removeprefix('torch.')}{self.suffix}"
        self.is_built = False
        self.parts_s: dict[str, float] = {}
        self._call: Function | None = None

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any model's
        """Call the package."""
        if self._call is None:
            self._load(inputs, kwargs)
        return self._call(*inputs, **kwargs)  # type: ignore[misc] # loaded above

    def _load(self, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Load the package, and build it before where there is none; each with its time."""
        if not self.path.is_file():
            self.is_built = True
            exported = self._time("export", lambda: self.export(inputs, kwargs))
            self._time("build", lambda: self.build(exported))
        self._call = self._time("load", self.open)

    def _time(self, part: str, run: Callable[[], Any]) -> Any:  # noqa: ANN401 - what each part makes
        begun = time.perf_counter()
        made = run()
        self.parts_s[part] = time.perf_counter() - begun
        return made

    def export(self, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401 - what :meth:`build` takes
        """Trace the model."""
        return torch.export.export(make_module(self.subject), inputs, dict(kwargs))

    def build(self, exported: Any) -> None:  # noqa: ANN401 - what :meth:`export` made
        """Build the package's file."""
        inductor = importlib.import_module("torch._inductor")
        inductor.aoti_compile_and_package(exported, package_path=str(self.path))

    def open(self) -> Function:
        """Open the package's file."""
        loaded: Function = importlib.import_module("torch._inductor").aoti_load_package(str(self.path))
        return loaded


class _Wrapped(torch.nn.Module):
    """A function as the module that export wants, with what it holds."""

    def __init__(self, function: Function, held: torch.nn.Module | None) -> None:
        super().__init__()
        self._function, self._held = function, held

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any function's
        return self._function(*inputs, **kwargs)


def make_module(subject: Subject) -> torch.nn.Module:
    """Make a module of a function, which is what export wants."""
    forward = subject.forward
    return forward if isinstance(forward, torch.nn.Module) else _Wrapped(forward, subject.module)


def _read_sources(cache: Path) -> Iterator[str]:
    for path in sorted(cache.glob("package-*.pt2")):
        with zipfile.ZipFile(path) as package:
            for name in sorted(package.namelist()):
                if name.endswith(_SOURCE):
                    yield package.read(name).decode(errors="replace")
