"""Names of torch and Triton that are nobody's promise: each is looked up when it is needed."""

from __future__ import annotations

import importlib
from typing import Any


def find_private(module: str, name: str) -> Any:  # noqa: ANN401 - private objects of torch and triton
    """Find an object by its name; None where this release has no such module, or none of that name."""
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None
