"""GPUs that code can be compiled for on a machine that has none: ``cuda:sm_90`` names one.

A target is named by its compute capability. What Inductor asks of a GPU beyond that is answered as a board
of that capability would: its numbers stand in the generated code, and so in the environment's fingerprint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

TARGET_KIND = "target"  # as ``Environment.device_kind``
TARGET_PATTERN = "cuda:sm_[0-9]{2,3}"
_GIB = 2**30


@dataclass(frozen=True, kw_only=True, slots=True)
class Board:
    """What Inductor and Triton ask of a GPU; bytes and counts as the board's data sheet gives them."""

    name: str
    multiprocessors: int
    memory_gib: int
    l2_cache_bytes: int
    threads_per_multiprocessor: int
    shared_per_block_bytes: int  # at most, where a kernel asks for it
    shared_per_multiprocessor_bytes: int

    @property
    def memory_bytes(self) -> int:
        """The board's memory."""
        return self.memory_gib * _GIB


def _make_board(name: str, size: tuple[int, int, int], threads: int, shared_kib: int) -> Board:
    """Make a board of (multiprocessors, GiB, MiB of L2); a block can have all shared memory but 1 KiB."""
    return Board(
        name=name,
        multiprocessors=size[0],
        memory_gib=size[1],
        l2_cache_bytes=size[2] * 2**20,
        threads_per_multiprocessor=threads,
        shared_per_block_bytes=(shared_kib - 1) * 1024,
        shared_per_multiprocessor_bytes=shared_kib * 1024,
    )


# One board for each capability, of those that CI and clouds have most.
BOARDS: Mapping[int, Board] = {
    80: _make_board("NVIDIA A100-SXM4-80GB", (108, 80, 40), 2048, 164),
    86: _make_board("NVIDIA A10G", (80, 24, 6), 1536, 100),
    89: _make_board("NVIDIA L4", (58, 24, 48), 1536, 100),
    90: _make_board("NVIDIA H100 80GB HBM3", (132, 80, 50), 2048, 228),
    100: _make_board("NVIDIA B200", (148, 180, 126), 2048, 228),
    120: _make_board("NVIDIA GeForce RTX 5090", (170, 32, 96), 1536, 100),
}


def is_target(device: str) -> bool:
    """Whether a device's name is that of a target: ``cuda:sm_90`` is, ``cuda:1`` is not."""
    return re.fullmatch(TARGET_PATTERN, device) is not None


def read_architecture(device: str) -> int:
    """Read a target's number: 90 of ``cuda:sm_90``; 0 for another device."""
    return int(device.rpartition("_")[2]) if is_target(device) else 0


def name_target(kind: str, capability: str) -> str:
    """Name the target of an environment by its kind of device and capability (``9.0``); empty for none."""
    device = f"cuda:sm_{capability.replace('.', '')}"
    return device if kind == TARGET_KIND and is_target(device) else ""


def name_targets() -> str:
    """Name the targets that are known, for a person."""
    return ", ".join(f"cuda:sm_{number}" for number in BOARDS)
