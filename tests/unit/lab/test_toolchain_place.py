"""Where the toolchain is kept between runs: the user's own place, never somebody else's, not under CI."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gate.files.disk import make_private_directory
from gate.lab.host.toolchain_place import (
    CACHE_VARIABLE,
    ToolchainState,
    find_toolchain_place,
    load_toolchain_state,
)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        pytest.param({"XDG_CACHE_HOME": "/var/cache"}, "/var/cache/compile-gate/toolchain", id="xdg"),
        pytest.param({"XDG_CACHE_HOME": "cache"}, "~/.cache/compile-gate/toolchain", id="xdg_not_absolute"),
        pytest.param({}, "~/.cache/compile-gate/toolchain", id="home"),
        pytest.param({CACHE_VARIABLE: "~/kept"}, "~/kept/toolchain", id="named"),
        pytest.param({CACHE_VARIABLE: "/data/kept", "CI": "true"}, "/data/kept/toolchain", id="named_in_ci"),
    ],
)
def test_place(variables: dict[str, str], expected: str) -> None:
    """It follows the XDG specification, unless a variable names another; nothing is made by looking."""
    found = find_toolchain_place(variables, "cpu")
    assert (found.directory, found.trouble) == (Path(expected).expanduser(), False)


@pytest.mark.parametrize(
    ("variables", "device", "word"),
    [
        pytest.param({CACHE_VARIABLE: "off"}, "cpu", "off", id="off"),
        pytest.param({"CI": "true"}, "cpu", "CI", id="ci"),
        pytest.param({}, "cuda:0", "CPU only", id="cuda"),
    ],
)
def test_nothing_is_kept(variables: dict[str, str], device: str, word: str) -> None:
    """Switched off, under CI and on a GPU every run primes anew, and the reason is told."""
    found = find_toolchain_place(variables, device)
    assert (found.directory, found.trouble) == (None, False)
    assert word in found.reason


def open_to_others(place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)


def link_elsewhere(place: Path) -> None:
    (place.parent / "elsewhere").mkdir(mode=0o700)
    place.symlink_to("elsewhere")


def give_away(place: Path) -> None:
    place.mkdir(mode=0o700)
    os.chown(place, 12345, -1)


@pytest.mark.parametrize(
    "prepare",
    [
        open_to_others,
        link_elsewhere,
        pytest.param(
            give_away, marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
        ),
        pytest.param(lambda place: place.write_text(""), id="file"),
    ],
)
def test_a_place_of_others_is_not_trusted(tmp_path: Path, prepare: object) -> None:
    """A directory that others own or can write to, a link or a file is refused, and told as trouble."""
    assert callable(prepare)
    prepare(tmp_path / "toolchain")
    found = find_toolchain_place({CACHE_VARIABLE: str(tmp_path)}, "cpu")
    assert (found.directory, found.trouble) == (None, True)
    assert str(tmp_path) in found.reason
    with pytest.raises(OSError, match=r"toolchain"):
        make_private_directory(tmp_path / "toolchain")


def test_state_counts_entries(tmp_path: Path) -> None:
    """What lies there is counted in entries and bytes; an entry being written counts as bytes only."""
    place = find_toolchain_place({CACHE_VARIABLE: str(tmp_path)}, "cpu")
    assert load_toolchain_state(place) == ToolchainState(place=place)
    for name in ("aa", "bb", ".pending-cc"):
        (tmp_path / "toolchain" / name).mkdir(parents=True)
        (tmp_path / "toolchain" / name / "x.so").write_bytes(b"x" * 100)
    expected = ToolchainState(place=place, entries=2, size_bytes=300)
    assert expected == load_toolchain_state(place)


def test_made_private(tmp_path: Path) -> None:
    """The directory is closed to others, whatever the umask."""
    old = os.umask(0)
    try:
        made = make_private_directory(tmp_path / "a" / "toolchain")
    finally:
        os.umask(old)
    assert made.stat().st_mode & 0o777 == 0o700
