"""docs/dev/architecture.md shows the floors that pyproject.toml demands."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
    "contracts"
]


def test_the_table_of_floors_is_the_contract() -> None:
    """Each room of the table is on the floor that import-linter holds it to, and none is left out."""
    (contract,) = (one for one in CONTRACTS if one.get("containers") == ["gate"])
    floors = [set(floor.split(" | ")) for floor in reversed(contract["layers"])]
    rows = re.findall(
        r"^\| (\d+) \| ([^|]+) \|",
        (ROOT / "docs/dev/architecture.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    told: dict[int, set[str]] = {}
    for floor, rooms in rows:
        told.setdefault(int(floor), set()).update(re.findall(r"`(\w+)(?:\.py|/)`", rooms))
    assert told == dict(enumerate(floors, start=1))
