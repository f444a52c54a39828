"""Files that are loaded before anything is timed."""

import pytest
from torch._inductor import codecache
from torch._inductor.runtime.triton_compat import triton_key

from gate.suite.fixture import import_compiler


def test_torchs_sources_are_hashed_before_anything_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first compile uses the hash, and reads no file of torch's again."""
    import_compiler()
    monkeypatch.setattr(codecache, "build_code_hash", None)  # nothing to hash with
    assert len(codecache.torch_key()) == 32


def test_tritons_library_is_hashed_before_anything_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of megabytes, which a compile for a processor would read too where triton is installed."""
    triton_key.cache_clear()
    import_compiler()
    monkeypatch.setattr("triton.runtime.cache.hashlib", None)  # nothing to hash with
    assert len(triton_key()) > 0
