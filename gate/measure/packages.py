"""What is installed for this interpreter; torch-free."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Their code defines workloads: another version may be another model, so an environment's id has them.
WORKLOAD_LIBRARIES = ("diffusers", "timm", "torchvision", "transformers")
_IN_ID = frozenset({"torch", "triton", *WORKLOAD_LIBRARIES})


def list_packages() -> dict[str, str]:
    return dict(_read_packages(_list_entries()))


def _list_entries() -> tuple[str, ...]:
    """Of the search path, those with packages: an arm's directory is seldom one."""
    return tuple(entry for entry in sys.path if any(metadata.distributions(path=[entry])))


# Reading takes half a second: once a server, whose workers inherit it.
@lru_cache(maxsize=1)
def _read_packages(_search_path: tuple[str, ...]) -> Mapping[str, str]:
    versions: dict[str, str] = {}
    for distribution in metadata.distributions():
        if distribution.name:  # one that was half removed has none
            versions.setdefault(name_package(distribution.name), distribution.version or "")
    return {name: versions[name] for name in sorted(versions.keys() - _IN_ID)}


def list_owners() -> Mapping[str, Sequence[str]]:
    return _read_owners(_list_entries())


@lru_cache(maxsize=1)
def _read_owners(_search_path: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
    return metadata.packages_distributions()


def name_package(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def list_installed(origin: Path) -> frozenset[str]:
    owners = list_owners()
    return frozenset(top for top, names in owners.items() if any(_is_from(name, origin) for name in names))


def _is_from(distribution: str, origin: Path) -> bool:
    """Whether a distribution was installed from below ``origin``, by its record of PEP 610."""
    record = json.loads(metadata.distribution(distribution).read_text("direct_url.json") or "{}")
    url = urlsplit(record.get("url", ""))
    return url.scheme == "file" and Path(unquote(url.path)).is_relative_to(origin)
