"""The toolchain's products kept between runs: one directory an entry, named by a key of what it depends on.

An entry is written beside its place and renamed
into it, so that a reader finds all of it or nothing; its manifest holds a checksum of every file, and an
entry that does not fit its manifest is removed. Files are copied, never linked: measured code may write
where a run works, and must not thereby reach the next run.

Inductor names every product by its own hash of compiler version, flags and preprocessed source, and looks
for it by that name; the key only has to distinguish what Inductor's hashes do not see, above all another
build of the same compiler, whose precompiled headers gcc would silently ignore.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import secrets
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from gate.files.disk import compute_size
from gate.measure.device.process_memory import read_cpu_flags, read_cpu_model
from gate.programs import ask_program

MAX_BYTES = 2**30  # of all entries; one is 160 MB with gcc 12: enough for six compilers or torches
MIN_FREE_CACHE_BYTES = 2 * 2**30  # a disk with less free than this is needed for trials
_CHUNK_BYTES = 2**20
_MANIFEST = "manifest.json"
_ABANDONED_S = 3600.0  # writing an entry takes a second: the process that began this one was killed
_PENDING = ".pending-"  # starts the name of an entry that is being written
_PASSING = (".lock",)  # who holds a lock now says nothing to a later run


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolchainCache:
    """An entry, and the directories of this run that its files belong in, by name."""

    root: Path
    key: str
    places: Mapping[str, Path]

    @property
    def entry(self) -> Path:
        """Directory of the entry, whether it exists or not."""
        return self.root / self.key


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """What an entry says of itself: checksums by name, and the notes of who stored it."""

    files: Mapping[str, str]
    notes: Mapping[str, str]


def restore_products(cache: ToolchainCache) -> Kept | None:
    """Copy an entry's files to their places; None, and nothing copied, when there is no sound one."""
    if not cache.entry.is_dir():
        return None
    try:
        kept = _load_manifest(cache.entry)
        if _copy_products(cache) != kept.files:
            raise ValueError(f"{cache.key} is damaged")  # noqa: TRY301 - one end for all damage
        os.utime(cache.entry)  # the least recently used goes first
    except (OSError, ValueError, LookupError, TypeError):  # damaged, or removed by another run
        clear_products(cache)
        drop_entry(cache)
        return None
    return kept


def store_products(cache: ToolchainCache, notes: Mapping[str, str]) -> None:
    """Make what lies in the places an entry, in the place of an older one of the same key.

    Raises:
        OSError: The disk is full or the directory cannot be written; no half of an entry is left.
    """
    if shutil.disk_usage(cache.root).free < MIN_FREE_CACHE_BYTES:
        return
    pending = cache.root / f"{_PENDING}{secrets.token_hex(8)}"
    try:
        pending.mkdir(mode=0o700)
        files = {name: _copy_file(path, pending / name) for name, path in list_products(cache).items()}
        content = json.dumps({"files": files, "notes": dict(notes)}, indent=1, sort_keys=True)
        (pending / _MANIFEST).write_text(content, encoding="utf-8")
        drop_entry(cache)
        _place_entry(pending, cache.entry)
    finally:
        shutil.rmtree(pending, ignore_errors=True)
    _trim_entries(cache.root, cache.entry)


def _place_entry(pending: Path, entry: Path) -> None:
    try:
        pending.rename(entry)
    except OSError as error:
        if error.errno not in {errno.EEXIST, errno.ENOTEMPTY}:
            raise
        # Another run was faster, by however little: its entry is as good.


def list_products(cache: ToolchainCache) -> dict[str, Path]:
    """List the files that lie in the places, by their names in an entry."""
    found: dict[str, Path] = {}
    for name, place in cache.places.items():
        found |= {f"{name}/{path.relative_to(place).as_posix()}": path for path in _iterate_files(place)}
    return found


def clear_products(cache: ToolchainCache) -> None:
    """Empty the places, of lock files too."""
    for place in cache.places.values():
        shutil.rmtree(place, ignore_errors=True)


def drop_entry(cache: ToolchainCache) -> None:
    """Remove the entry. It vanishes at once, so that no reader finds half of it."""
    doomed = cache.root / f"{_PENDING}{secrets.token_hex(8)}"
    with suppress(OSError):  # there is none, or another run removed it
        cache.entry.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def _load_manifest(entry: Path) -> Kept:
    content = json.loads((entry / _MANIFEST).read_bytes())
    return Kept(files=dict(content["files"]), notes=dict(content["notes"]))


def _copy_products(cache: ToolchainCache) -> dict[str, str]:
    """Copy an entry's files to their places; return their checksums by name."""
    sources = {path.relative_to(cache.entry).as_posix(): path for path in _iterate_files(cache.entry)}
    sources.pop(_MANIFEST, None)
    return {name: _copy_file(source, _find_place(cache, name)) for name, source in sources.items()}


def _iterate_files(directory: Path) -> list[Path]:
    """List regular files below a directory, sorted; what a link points to is not ours."""
    paths = sorted(directory.rglob("*"))
    return [
        path for path in paths if path.suffix not in _PASSING and path.is_file() and not path.is_symlink()
    ]


def _find_place(cache: ToolchainCache, name: str) -> Path:
    place, _, rest = name.partition("/")
    return cache.places[place] / rest


def _copy_file(source: Path, target: Path) -> str:
    """Copy content, rights and times; return the content's checksum."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with source.open("rb") as reader, target.open("xb") as writer:
        while chunk := reader.read(_CHUNK_BYTES):
            digest.update(chunk)
            writer.write(chunk)
    shutil.copystat(source, target)
    return digest.hexdigest()


def _trim_entries(root: Path, kept: Path) -> None:
    """Remove the least recently used entries until the others fit, and what killed runs left."""
    ages = sorted(((_read_age_s(path), path) for path in root.iterdir()), key=lambda pair: pair[0])
    total = 0
    for age_s, path in ages:
        if path.name.startswith(_PENDING):
            doomed = age_s > _ABANDONED_S
        else:
            total += compute_size(path)
            doomed = total > MAX_BYTES and path != kept
        if doomed:
            shutil.rmtree(path, ignore_errors=True)


def _read_age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:  # another run removed it
        return 0.0


_FORMAT = "1"  # of entries: another one is another key
_TIMEOUT_S = 20
# Variables by which a compiler finds other headers and libraries than its own.
_PATH_VARIABLES = (
    *("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "LD_LIBRARY_PATH"),
    *("COMPILER_PATH", "GCC_EXEC_PREFIX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "LD_PRELOAD"),
)


def compute_key(ingredients: dict[str, str]) -> str:
    """Compute the name of an entry; another value of any ingredient is another name."""
    return hashlib.sha256(json.dumps(ingredients, sort_keys=True).encode()).hexdigest()[:32]


def collect_ingredients() -> dict[str, str]:
    """Collect all that products of the CPU toolchain depend on; empty where products cannot be shared.

    Precompiled headers of other compilers than gcc remember where they were made.
    """
    compiler = _find_compiler()
    if compiler is None:
        return {}
    inductor = torch._inductor.config.save_config_portable()  # noqa: SLF001 - what torch hashes for its own caches
    return {
        "format": _FORMAT,
        "torch": f"{torch.__version__} {torch.version.git_version} {_identify_file(torch._C.__file__)}",  # noqa: SLF001
        "headers": str(torch.__file__),  # precompiled headers name them as they were found, links and all
        "python": f"{sys.version} {sys.prefix}",
        "system": f"{platform.platform()} {' '.join(platform.libc_ver())}",
        "cpu": f"{read_cpu_model()} {read_cpu_flags()}",
        "inductor": repr(sorted(inductor.items())),
        "variables": repr([os.environ.get(name) for name in _PATH_VARIABLES]),
        **compiler,
    }


def _find_compiler() -> dict[str, str] | None:
    """Identify gcc's driver and the compiler proper behind it; None where there is no gcc."""
    command = os.environ.get("CXX", "g++")
    driver = shutil.which(command)
    version = ask_program([command, "--version"], limit_s=_TIMEOUT_S).output
    if driver is None or "Free Software Foundation" not in version:
        return None
    proper = shutil.which(ask_program([command, "-print-prog-name=cc1plus"], limit_s=_TIMEOUT_S).output)
    if proper is None:
        return None
    return {
        "command": command,
        "compiler": f"{version} {_identify_file(driver)}",
        "proper": _identify_file(proper),
    }


def _identify_file(path: str) -> str:
    """Identify a file that is too large to read: by its real path, size and time of change."""
    real = Path(path).resolve()
    found = real.stat()
    return f"{real} {found.st_size} {found.st_mtime_ns}"
