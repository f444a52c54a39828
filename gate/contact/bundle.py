"""The bundle: all that was seen, in one archive that can be attached to an issue. Torch-free."""

from __future__ import annotations

import zipfile
from pathlib import Path

from gate.programs import ask_program

# What is asked beside the assumptions: texts of real tools, in the formats of this driver.
_COMMANDS = {
    "nvidia-smi-q.txt": ("nvidia-smi", "-q"),
    "nvidia-smi-L.txt": ("nvidia-smi", "-L"),
    "nvidia-smi-topo.txt": ("nvidia-smi", "topo", "-m"),
    "nvidia-smi-apps.csv": ("nvidia-smi", "--query-compute-apps=gpu_uuid,pid", "--format=csv"),
    "lscpu.txt": ("lscpu",),
    "packages.txt": ("{python}", "-P", "-m", "pip", "list"),
    "collect-env.txt": ("{python}", "-P", "-m", "torch.utils.collect_env"),
}
_LIMIT_S = 120.0
MAX_FILE_BYTES = 8 * 2**20  # a larger one is left out: an issue takes 25 MB


def collect_texts(out: Path, python: str) -> None:
    """Run the tools that describe the machine; what one of them cannot say is written in its place."""
    for name, command in _COMMANDS.items():
        told = ask_program([part.format(python=python) for part in command], limit_s=_LIMIT_S)
        text = f"{told.problem}\n" if told.problem else f"{told.out}{told.err}"
        (out / name).write_text(text, encoding="utf-8")


def write_bundle(out: Path, path: Path) -> tuple[str, ...]:
    """Write all files below ``out`` into a zip archive; return the names of those that are too large."""
    files = sorted(one for one in out.rglob("*") if one.is_file())
    left_out = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in files:
            name = str(one.relative_to(out))
            if one.stat().st_size > MAX_FILE_BYTES:
                left_out.append(name)
            else:
                archive.write(one, name)
    return tuple(left_out)
