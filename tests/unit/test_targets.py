"""Names of targets, and their boards."""

import pytest

from gate.devices import BOARDS, CPU, CUDA, TARGET, get_kind, is_target, name_targets, read_architecture


@pytest.mark.parametrize(
    ("device", "architecture"),
    [("cuda:sm_90", 90), ("cuda:sm_120", 120), ("cuda:1", 0), ("cuda", 0), ("cpu", 0), ("cuda:sm_", 0)],
)
def test_a_target_is_distinguished_from_a_device(device: str, architecture: int) -> None:
    """A number is a device, a capability a target."""
    assert (read_architecture(device), is_target(device)) == (architecture, architecture > 0)


def test_each_kind_is_found_by_name() -> None:
    """A target is a kind of its own."""
    assert [get_kind(name) for name in ("cpu", "cuda:1", "cuda:sm_90")] == [CPU, CUDA, TARGET]


def test_a_block_gets_all_shared_memory_but_a_kibibyte() -> None:
    """By NVIDIA's guide: 163, 99 and 227 KiB of 164, 100 and 228."""
    kib = {number: board.block_shared_kib for number, board in BOARDS.items()}
    assert kib == {80: 163, 86: 99, 89: 99, 90: 227, 100: 227, 120: 99}


def test_all_targets_are_listed() -> None:
    assert name_targets().split(", ")[:2] == ["cuda:sm_80", "cuda:sm_86"]
