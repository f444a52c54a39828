"""Where the toolchain's products are kept between runs, and whether they are.

Measured code runs as the same user and could write there. On a machine of one's own that is one more
place of many; on a host that runs other people's changes, the next run would load what a change left.
So under CI nothing is kept unless ``COMPILE_GATE_CACHE`` names a directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gate.devices import find_kind
from gate.files.disk import check_private, compute_size

CACHE_VARIABLE = "COMPILE_GATE_CACHE"
OFF = "off"


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolchainPlace:
    """The directory, or None and the reason why there is none."""

    directory: Path | None = None
    reason: str = ""
    trouble: bool = False  # it was meant to be used, and cannot be


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolchainState:
    """What a reader is told of the place: its entries and their bytes, or why it is not used."""

    place: ToolchainPlace = field(default_factory=ToolchainPlace)
    entries: int = 0
    size_bytes: int = 0


def find_toolchain_place(variables: Mapping[str, str], device: str) -> ToolchainPlace:
    """Find the directory for ``device``; it need not exist yet. What keeps it from being used is told."""
    if why_not := find_kind(device).why_not_kept:
        return ToolchainPlace(reason=why_not)
    named = variables.get(CACHE_VARIABLE, "")
    if named == OFF:
        return ToolchainPlace(reason=f"{CACHE_VARIABLE} is {OFF}")
    if not named and variables.get("CI"):
        return ToolchainPlace(reason=f"not kept under CI unless {CACHE_VARIABLE} names a directory")
    try:
        place = (Path(named) if named else _find_user_cache(variables)).expanduser().absolute() / "toolchain"
        if place.exists():
            check_private(place)
    except (OSError, RuntimeError) as error:  # RuntimeError: nobody knows where home is
        problem = f"{error.filename} {error.strerror}" if isinstance(error, OSError) else str(error)
        return ToolchainPlace(reason=problem, trouble=True)
    return ToolchainPlace(directory=place)


def load_toolchain_state(place: ToolchainPlace) -> ToolchainState:
    """Count what lies at the place."""
    if place.directory is None or not place.directory.is_dir():
        return ToolchainState(place=place)
    entries = [path for path in place.directory.iterdir() if not path.name.startswith(".")]
    return ToolchainState(place=place, entries=len(entries), size_bytes=compute_size(place.directory))


def _find_user_cache(variables: Mapping[str, str]) -> Path:
    """Find the directory that the XDG base directory specification says."""
    base = variables.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path("~/.cache")) / "compile-gate"
