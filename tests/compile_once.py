"""``python compile_once.py STORE COMPILER ARGUMENT...``: the C++ compiler, which compiles nothing twice.

Each run of the gate primes its own toolchain, and most tests of one start with the same header, processor
probes and kernels: ten seconds of a core, some twenty times in a run of the tests. Products depend on the
contents of the files among the arguments and on the other arguments; directories count by their real paths,
since an environment may link to another one's packages.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path


def main(store: str, compiler: str, *arguments: str) -> int:
    """Compile, or copy what was compiled; return the compiler's status."""
    if "-o" not in arguments:  # asked for its version, or to print
        os.execv(compiler, (compiler, *arguments))  # noqa: S606 - a compiler, as whoever called it meant
    output = Path(arguments[arguments.index("-o") + 1])
    kept = Path(store, compute_key(arguments, output))
    with kept.with_suffix(".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # who wants the same meanwhile waits for it, and compiles nothing
        if not kept.exists():
            status = subprocess.run((compiler, *arguments), check=False).returncode
            if status == 0:
                copy_file(output, kept)
            return status
    copy_file(kept, output)
    return 0


def compute_key(arguments: tuple[str, ...], output: Path) -> str:
    """The name of a product, from the contents of its input files and the other arguments."""
    digest = hashlib.sha256()
    for argument in arguments:
        path = Path(argument)
        if path == output:
            content = output.suffix.encode()
        elif path.is_file():
            content = path.read_bytes()
        else:
            option, _, directory = argument.partition("/")
            content = f"{option}{os.path.realpath(f'/{directory}') if directory else ''}".encode()
        digest.update(b"%d %b" % (len(content), content))
    return digest.hexdigest()


def copy_file(source: Path, target: Path) -> None:
    """Copy a file atomically."""
    pending = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.copyfile(source, pending)
    shutil.copymode(source, pending)
    pending.replace(target)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
