"""Tests of what may not be read, as an ordinary user."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_NOBODY = 65534


@contextmanager
def act_as_ordinary_user() -> Iterator[None]:
    """Give up root's right to read everything for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
