"""Files that are loaded before anything is timed."""

import pytest
from torch._inductor import codecache

from gate.suite.fixture import import_compiler


def test_torchs_sources_are_hashed_before_anything_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first compile uses the hash, and reads no file of torch's again."""
    import_compiler()
    monkeypatch.setattr(codecache, "build_code_hash", None)  # nothing to hash with
    assert len(codecache.torch_key()) == 32


def test_tritons_library_is_hashed_before_anything_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compile for a processor would read its hundreds of megabytes too."""
    import_compiler()
    monkeypatch.setattr("torch._inductor.runtime.triton_compat.triton_key", None)
    assert len(codecache.triton_key() or "") > 0
