"""docs/dev/architecture.md shows the layers of pyproject.toml."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
    "contracts"
]


def test_the_table_of_layers_is_the_contract() -> None:
    """Each package is in its layer of import-linter, and none is left out."""
    (contract,) = (contract for contract in CONTRACTS if contract.get("containers") == ["gate"])
    layers = [set(layer.split(" | ")) for layer in reversed(contract["layers"])]
    rows = re.findall(
        r"^\| (\d+) \| ([^|]+) \|",
        (ROOT / "docs/dev/architecture.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    shown: dict[int, set[str]] = {}
    for layer, packages in rows:
        shown.setdefault(int(layer), set()).update(re.findall(r"`(\w+)(?:\.py|/)`", packages))
    assert shown == dict(enumerate(layers, start=1))
