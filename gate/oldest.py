"""The oldest releases that will do, in one place: pyproject.toml says the same, and a test compares.

It cannot be read instead: a copy of the package has to know them too.
"""

from __future__ import annotations

import re
from importlib import metadata

OLDEST_PYTHON = "3.11"
OLDEST_TORCH = "2.11"  # the oldest whose internals the measuring code has been checked against
# What the gate itself imports. An environment that has an older one cannot be used as it is.
OLDEST_PACKAGES = {
    "argcomplete": "3.4",
    "jinja2": "3.1",
    "nvidia-ml-py": "11.525",
    "packaging": "23.0",
    "psutil": "5.9",
    "pytest": "8.0",
    "pytest-benchmark": "5.0",
    "pyyaml": "6.0",
    "requests": "2.31",
    "rich": "13.0",
    "urllib3": "2.2",
}


def is_installed(package: str) -> bool:
    """Whether a package is beside this interpreter."""
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def is_older(release: str, oldest: str) -> bool:
    """Whether a release is too old; whatever follows its leading numbers does not count."""
    return _parse_release(release) < _parse_release(oldest)


def _parse_release(text: str) -> tuple[int, ...]:
    leading = re.match(r"[0-9]+(?:\.[0-9]+)*", text)
    return tuple(int(part) for part in leading[0].split(".")) if leading else ()
