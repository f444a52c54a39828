"""Whose rights a test has, for those that are about what may not be read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_NOBODY = 65534


@contextmanager
def act_as_ordinary_user() -> Iterator[None]:
    """Give up root's right to read everything for a moment; an ordinary user stays who he is."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
