"""The table of device kinds is complete, and rules follow it."""

import ast
import dataclasses
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import gate
from gate.devices import (
    CPU,
    CUDA,
    DEVICE_FORMS,
    DEVICE_PATTERN,
    KINDS,
    Canaries,
    DeviceKind,
    get_kind,
    is_gpu,
)
from gate.project.config import LIMIT_KEYS
from gate.project.entries import GateFile

PACKAGE = Path(gate.__file__).parent
GUIDE = (PACKAGE.parent / "docs" / "dev" / "adding-a-device.md").read_text(encoding="utf-8")
# Of the package, what compares a name of a kind: rows have flags for that.
_COMPARED = re.compile(r"""[=!]= ?["'](?:cpu|cuda)["']""")

QUESTIONS = """
from pathlib import Path

import gate
from file_schemas import refresh_schema  # as generate_docs.py does

schema = Path(gate.__file__).parent / "schemas" / "config.json"
schema.write_text(refresh_schema("config", schema.read_text()))

from gate.action.inputs import INPUTS
from gate.check.schedule import plan_content
from gate.project.config import apply_options, make_config
from gate.project.entries import GateFile
from gate.records.cases import Metric
from gate.selftest.catalog import list_faults

config = apply_options(make_config(GateFile(version=1)), device="xpu:1")
print({
    "device": config.device,
    "budget_s": config.budget_s,
    "input": next(one for one in INPUTS if one.name == "device").expected,
    "compiles": plan_content([Metric.COMPILED_LATENCY], 2, config.device).compiles,
    "faults": sum(one.caught > 0.0 for one in list_faults("xpu") if one.kind == "slowdown"),
})
"""


@pytest.mark.parametrize("part", [DeviceKind, Canaries])
def test_no_property_can_be_forgotten(part: type) -> None:
    """No field of a row has a default, so mypy finds a missing one."""
    fields = dataclasses.fields(part)

    assert fields
    assert all(field.default is dataclasses.MISSING for field in fields)
    assert all(field.default_factory is dataclasses.MISSING for field in fields)


@pytest.mark.parametrize(
    ("device", "fits"),
    [("cpu", True), ("cuda", True), ("cuda:1", True), ("cuda:123", False), ("cpu:1", False), ("tpu", False)],
)
def test_names_of_devices(device: str, fits: bool) -> None:
    """There is one CPU, and GPUs by number; other names are refused."""
    assert (re.fullmatch(DEVICE_PATTERN, device) is not None) == fits
    assert DEVICE_FORMS == "cpu, cuda or cuda:N"


def test_a_numbered_device_is_of_its_kind() -> None:
    assert get_kind("cuda:1") is get_kind("cuda") is CUDA
    assert get_kind("cpu") is CPU


def test_an_unknown_kind_in_a_record_is_compared_like_a_gpu() -> None:
    """All fields of a newer version's device must agree."""
    assert (is_gpu("xpu"), is_gpu("cuda"), is_gpu("cpu")) == (True, True, False)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_limits_are_keys_of_the_configuration(kind: DeviceKind) -> None:
    """A kind has defaults only for keys whose defaults follow it."""
    assert kind.limits.keys() <= set(LIMIT_KEYS) <= GateFile.__dataclass_fields__.keys()


def test_nothing_compares_the_name_of_a_kind() -> None:
    """The code asks the row, not the kind's name."""
    lines = [
        f"{path.relative_to(PACKAGE)}: {match[0]}"
        for path in PACKAGE.rglob("*.py")
        for match in _COMPARED.finditer(path.read_text(encoding="utf-8"))
    ]

    assert lines == []


def test_row_of_the_guide_is_known_everywhere(tmp_path: Path) -> None:
    """A copy of the package accepts the guide's kind in gate.yml, options and the action."""
    (row,) = [textwrap.dedent(block) for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)]
    shutil.copytree(PACKAGE, tmp_path / "gate", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "gate" / "devices.py"
    text = file.read_text(encoding="utf-8")
    text = text.replace("import dataclass\n", "import dataclass, replace\n").replace(
        "KINDS: ", f"{row}KINDS: "
    )
    file.write_text(text.replace("(CPU, CUDA)", "(CPU, CUDA, XPU)"), encoding="utf-8")
    path = [str(tmp_path), str(PACKAGE.parent / "tools")]
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path[:0] = {path}\n{QUESTIONS}"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert ast.literal_eval(done.stdout) == {
        "device": "xpu:1",
        "budget_s": 2400.0,
        "input": "cpu, cuda, cuda:N, xpu or xpu:N",
        "compiles": True,  # its tuning is drawn anew
        "faults": 4,  # of 30, 10, 5 and 3 %
    }
