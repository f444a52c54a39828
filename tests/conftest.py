"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gate.lab.toolchain_place import CACHE_VARIABLE


@pytest.fixture(scope="session", autouse=True)
def toolchain_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Prime the toolchain once for all runs of the session, and keep nothing of the user's or for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.mktemp("toolchain")))
        yield
