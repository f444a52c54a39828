"""The tests' C++ compiler compiles once and copies then."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import compile_once

# Notes each call. What it compiles is the source and the options, unless the source is wrong.
COMPILER = """\
#!/bin/sh
echo call >> {calls}
[ "$1" = --version ] && echo "a compiler" && exit 0
grep -q wrong "$1" && exit 3
grep -q slow "$1" && sleep 1
(cat "$1"; echo "$2") > "$4"
"""


class Compiler:
    """A compiler in its own directory, behind the one that compiles nothing twice."""

    def __init__(self, top: Path) -> None:
        self.top, self.calls = top, top / "calls"
        (top / "store").mkdir()
        compiler = top / "compiler"
        compiler.write_text(COMPILER.format(calls=self.calls))
        compiler.chmod(0o755)
        self.command = (sys.executable, compile_once.__file__, top / "store", compiler)

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run((*self.command, *arguments), capture_output=True, text=True, check=False)

    def compile(self, name: str, content: str, option: str = "-O1") -> tuple[str, int]:
        """Compile a source in a directory of this name; return the product and the number of calls."""
        directory = self.top / name
        directory.mkdir()
        (directory / "one.cpp").write_text(content)
        done = self.run(directory / "one.cpp", option, "-o", directory / "one.so")
        product = (directory / "one.so").read_text() if done.returncode == 0 else f"status {done.returncode}"
        return product, len(self.calls.read_text().splitlines())


@pytest.fixture
def compiler(tmp_path: Path) -> Compiler:
    return Compiler(tmp_path)


def test_the_same_source_is_compiled_once_wherever_it_lies(compiler: Compiler) -> None:
    """Another source or option is compiled."""
    assert compiler.compile("first", "sine\n") == ("sine\n-O1\n", 1)
    assert compiler.compile("second", "sine\n") == ("sine\n-O1\n", 1)
    assert compiler.compile("third", "cosine\n") == ("cosine\n-O1\n", 2)
    assert compiler.compile("fourth", "sine\n", "-O2") == ("sine\n-O2\n", 3)


def test_the_same_source_is_compiled_once_at_the_same_time(compiler: Compiler) -> None:
    """The second waits for the first."""
    with ThreadPoolExecutor() as threads:
        compiled = list(threads.map(compiler.compile, ("first", "second"), ("slow\n", "slow\n")))
    assert compiled == [("slow\n-O1\n", 1)] * 2


def test_a_directory_is_known_by_where_it_is(compiler: Compiler) -> None:
    """A link to a directory counts as the directory."""
    (compiler.top / "real").mkdir()
    (compiler.top / "link").symlink_to(compiler.top / "real")
    calls = [
        compiler.compile(name, "sine\n", f"-I{compiler.top}/{directory}")[1]
        for name, directory in {"first": "real", "second": "link", "third": "elsewhere"}.items()
    ]
    assert calls == [1, 1, 2]


def test_what_cannot_be_compiled_is_tried_again(compiler: Compiler) -> None:
    """Each time with the compiler's status."""
    assert compiler.compile("first", "wrong") == ("status 3", 1)
    assert compiler.compile("second", "wrong") == ("status 3", 2)


def test_options_without_a_source_reach_the_compiler(compiler: Compiler) -> None:
    """The compiler answers --version."""
    assert compiler.run("--version").stdout == "a compiler\n"
