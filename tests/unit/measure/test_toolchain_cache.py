"""The kept toolchain: whole and unharmed, or not used; bounded; safe with several runs at once."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gate.measure.toolchain import cache as toolchain_cache
from gate.measure.toolchain.cache import (
    Kept,
    ToolchainCache,
    drop_entry,
    list_products,
    restore_products,
    store_products,
)

NOTES = {"isas": "avx512 avx2"}


def open_cache(directory: Path, run: str = "first", key: str = "0123") -> ToolchainCache:
    """Open the cache as one run does, with places of its own."""
    root = directory / "cache"
    root.mkdir(exist_ok=True)
    places = {name: directory / run / name for name in ("headers", "inductor")}
    return ToolchainCache(root=root, key=key, places=places)


def fill(cache: ToolchainCache, content: bytes = b"header") -> None:
    """Leave what a primer leaves: a header, a probe that can be executed, and locks."""
    inductor = cache.places["inductor"] / "ab"
    for directory in (cache.places["headers"], inductor, cache.places["inductor"] / "locks"):
        directory.mkdir(parents=True)
    (cache.places["headers"] / "prefix.h.gch").write_bytes(content)
    (inductor / "probe.so").write_bytes(b"\x7fELF")
    (inductor / "probe.so").chmod(0o755)
    (cache.places["inductor"] / "locks" / "probe.lock").touch()


@pytest.fixture
def stored(tmp_path: Path) -> ToolchainCache:
    """What a first run stored, as a second one opens it."""
    first = open_cache(tmp_path)
    fill(first)
    store_products(first, NOTES)
    return open_cache(tmp_path, "second")


def test_a_later_run_gets_the_same_files(stored: ToolchainCache) -> None:
    """Content, rights and times come back below other places; locks of the first run do not."""
    kept = restore_products(stored)
    assert isinstance(kept, Kept)
    assert (set(kept.files), kept.notes) == ({"headers/prefix.h.gch", "inductor/ab/probe.so"}, NOTES)
    found = list_products(stored)
    assert found["headers/prefix.h.gch"].read_bytes() == b"header"
    assert found["inductor/ab/probe.so"].stat().st_mode & 0o777 == 0o755
    original = stored.entry / "headers" / "prefix.h.gch"
    assert found["headers/prefix.h.gch"].stat().st_mtime_ns == original.stat().st_mtime_ns
    assert found["headers/prefix.h.gch"].stat().st_ino != original.stat().st_ino  # a copy, not a link


def test_an_empty_cache_gives_nothing(tmp_path: Path) -> None:
    """Without an entry nothing is restored and nothing made."""
    assert restore_products(open_cache(tmp_path)) is None
    assert not (tmp_path / "first").exists()


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(lambda entry: (entry / "headers/prefix.h.gch").write_bytes(b"headex"), id="changed"),
        pytest.param(lambda entry: (entry / "headers/prefix.h.gch").unlink(), id="lost"),
        pytest.param(lambda entry: (entry / "inductor/new.so").write_bytes(b""), id="added"),
        pytest.param(lambda entry: (entry / "elsewhere").write_bytes(b""), id="out_of_place"),
        pytest.param(lambda entry: (entry / "manifest.json").unlink(), id="no_manifest"),
        pytest.param(lambda entry: (entry / "manifest.json").write_text('{"fil'), id="half_a_manifest"),
        pytest.param(lambda entry: (entry / "manifest.json").write_text("[]"), id="another_manifest"),
        pytest.param(
            lambda entry: (entry / "manifest.json").write_text(json.dumps({"files": 3, "notes": {}})),
            id="wrong_manifest",
        ),
    ],
)
def test_a_damaged_entry_is_removed(stored: ToolchainCache, harm: Callable[[Path], object]) -> None:
    """Any difference between files and manifest removes the entry and leaves no file in its places."""
    harm(stored.entry)
    assert restore_products(stored) is None
    assert list_products(stored) == {}
    assert list(stored.root.iterdir()) == []


def test_a_link_in_an_entry_is_not_followed(stored: ToolchainCache, tmp_path: Path) -> None:
    """A file that was replaced by a link is a damaged entry, whatever the link points to."""
    header = stored.entry / "headers" / "prefix.h.gch"
    (tmp_path / "same").write_bytes(header.read_bytes())
    header.unlink()
    header.symlink_to(tmp_path / "same")
    assert restore_products(stored) is None


def test_another_key_is_another_entry(stored: ToolchainCache, tmp_path: Path) -> None:
    """What one key stored is not found under another."""
    assert restore_products(open_cache(tmp_path, "third", key="4567")) is None
    assert restore_products(stored) is not None


def test_an_entry_is_replaced(stored: ToolchainCache, tmp_path: Path) -> None:
    """Storing again under the same key leaves the newer files only, and nothing half written."""
    fill(stored, b"newer")
    store_products(stored, {})
    assert [path.name for path in stored.root.iterdir()] == ["0123"]
    third = open_cache(tmp_path, "third")
    assert restore_products(third) is not None
    assert (third.places["headers"] / "prefix.h.gch").read_bytes() == b"newer"


def test_the_cache_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond its size the entries that were not used for longest go, never the new one."""
    monkeypatch.setattr(toolchain_cache, "MAX_BYTES", 3000)
    for age, key in ((300, "oldest"), (100, "used"), (200, "older")):
        cache = open_cache(tmp_path, f"run-{key}", key)
        fill(cache, b"x" * 700)
        store_products(cache, {})
        os.utime(cache.entry, (1_000_000 - age, 1_000_000 - age))
    assert (
        restore_products(open_cache(tmp_path, "reader", "oldest")) is not None
    )  # used again: now the youngest
    newest = open_cache(tmp_path, "run-newest", "newest")
    fill(newest, b"x" * 1500)
    store_products(newest, {})
    assert {path.name for path in newest.root.iterdir()} == {"newest", "oldest"}


def test_what_killed_runs_left_is_removed(stored: ToolchainCache) -> None:
    """An unfinished entry goes when it is old; a young one may be another run's at work."""
    for name in (".pending-old", ".pending-young"):
        (stored.root / name).mkdir()
    os.utime(stored.root / ".pending-old", (0, 0))
    fill(stored)
    store_products(stored, NOTES)
    assert {path.name for path in stored.root.iterdir()} == {".pending-young", "0123"}


def test_little_disk_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where disk is short it is left to the trials."""
    monkeypatch.setattr(toolchain_cache, "MIN_FREE_CACHE_BYTES", 2**60)
    cache = open_cache(tmp_path)
    fill(cache)
    store_products(cache, NOTES)
    assert list(cache.root.iterdir()) == []


def test_a_write_that_fails_leaves_no_half_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills while an entry is written leaves nothing behind."""

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    cache = open_cache(tmp_path)
    fill(cache)
    monkeypatch.setattr(shutil, "copystat", fail)
    with pytest.raises(OSError, match="No space"):
        store_products(cache, NOTES)
    assert list(cache.root.iterdir()) == []


def test_entry_of_a_faster_run_stays(
    stored: ToolchainCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that stores at the very moment when another has stored gives way."""
    cache = open_cache(tmp_path, "slower")
    fill(cache)
    monkeypatch.setattr(toolchain_cache, "drop_entry", lambda _: None)  # the other stores just after
    store_products(cache, {"isas": "of the slower run"})
    kept = restore_products(open_cache(tmp_path, "reader"))
    assert kept is not None
    assert kept.notes == NOTES
    assert [stored.key] == [path.name for path in stored.root.iterdir()]


def test_runs_at_once_see_a_whole_entry_or_none(stored: ToolchainCache, tmp_path: Path) -> None:
    """While runs store and drop an entry, readers get all its files or none of them."""
    wrong: list[object] = []

    def read(number: int) -> None:
        for turn in range(20):
            cache = open_cache(tmp_path, f"reader-{number}-{turn}")
            kept = restore_products(cache)
            if len(list_products(cache)) != (2 if kept else 0):
                wrong.append(list_products(cache))

    def write(number: int) -> None:
        cache = open_cache(tmp_path, f"writer-{number}")
        fill(cache)
        for _ in range(20):
            store_products(cache, NOTES)
            drop_entry(cache)

    threads = [threading.Thread(target=work, args=(number,)) for work in (read, write) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert [path.name for path in stored.root.iterdir() if path.name != "0123"] == []
