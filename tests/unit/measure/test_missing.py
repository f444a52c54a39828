"""What a machine lacks, by a primer's exception."""

import sys
from types import SimpleNamespace

import pytest

from gate.devices import CPU, CUDA, DeviceKind
from gate.errors import MachineError
from gate.measure.failures import find_fix

CXX, HEADERS, DEVICE = "C++ compiler (g++)", "headers of Python", "--device cpu"
TORCH = f"torch for {sys.executable}"


def assert_fixes(fix: str, expected: str) -> None:
    """Check that a fix has these texts, or that there is none."""
    assert bool(fix) == bool(expected)
    assert expected in fix


class InvalidCxxCompiler(RuntimeError):  # noqa: N818 - as Inductor calls it
    """Stands for Inductor's exception of this name."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ModuleNotFoundError("No module named 'torch'", name="torch"), TORCH),
        (ModuleNotFoundError("No module named 'numpy'", name="numpy"), ""),
        (InvalidCxxCompiler("none of g++ and clang++ works"), CXX),
        (RuntimeError("No working C++ compiler found in config.cpp.cxx: (None, 'g++')"), CXX),
        (RuntimeError("fatal error: Python.h: No such file or directory"), HEADERS),
        (AssertionError("Torch not compiled with CUDA enabled"), DEVICE),
        (RuntimeError("Found no NVIDIA driver on your system."), DEVICE),
        (RuntimeError("CUDA error: invalid device ordinal"), DEVICE),
        (ValueError("something else"), ""),
    ],
)
def test_what_is_missing_is_named_by_what_fixes_it(error: Exception, expected: str) -> None:
    """If the exception's type does not show it, the compiler's or driver's message does."""
    assert_fixes(find_fix(error), expected)


def test_an_exception_is_looked_at_with_its_causes() -> None:
    """Inductor wraps a compiler's message in an exception of its own."""
    wrapped = RuntimeError("backend failed")
    wrapped.__cause__ = InvalidCxxCompiler()
    assert CXX in find_fix(wrapped)


@pytest.mark.parametrize(
    ("directory", "expected"), [("/my envs/torch", "without blanks"), ("/größer,2/torch", "")]
)
def test_a_path_that_compilers_cannot_take_is_the_reason(
    monkeypatch: pytest.MonkeyPatch, directory: str, expected: str
) -> None:
    """The linker looks for torch's libraries in ``/my``; a letter of any language does no harm."""
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__file__=f"{directory}/__init__.py"))
    assert_fixes(find_fix(RuntimeError("CppCompileError: C++ compile error")), expected)


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (RuntimeError("fatal error: Python.h: No such file or directory"), HEADERS),
        (OSError(28, "No space left on device"), ""),
        (InvalidCxxCompiler("none of g++ and clang++ works"), CXX),
    ],
)
@pytest.mark.parametrize("kind", [CPU, CUDA])
def test_our_own_words_decide_nothing(kind: DeviceKind, cause: Exception, expected: str) -> None:
    """`prime_toolchain` reports "the C++ compiler does not work" for any cause."""
    wrapped = MachineError(f"the {kind.toolchain} does not work: {cause}", "Install a C++ compiler.")
    wrapped.__cause__ = cause
    assert_fixes(find_fix(wrapped), expected)
