"""Instruction sets: probed once, believed afterwards, and only when all of them passed."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch._inductor.config
from torch._inductor import cpu_vec_isa

from gate.measure import toolchain
from gate.measure.device.cpu import CpuDevice
from gate.measure.toolchain import load_toolchain, probe_isas


class Prober:
    """Stands in for torch's list of instruction sets, of which some pass their probe."""

    def __init__(self, passing: set[str]) -> None:
        self.passing = passing
        self.saw_ok: list[Any] = []

    def list_valid(self) -> list[str]:
        self.saw_ok.append(torch._inductor.config.cpp.vec_isa_ok)
        return [isa for isa in ("avx512", "avx2") if isa in self.passing]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Inductor's cache directory, on a processor with both instruction sets."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setattr(cpu_vec_isa, "supported_vec_isa_list", ["avx512", "avx2"])
    monkeypatch.setattr(cpu_vec_isa, "x86_isa_checker", lambda: ["avx2", "avx512"])
    with torch._inductor.config.patch({"cpp.vec_isa_ok": None}):
        yield tmp_path / "inductor"


def use(prober: Prober, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_vec_isa, "valid_vec_isa_list", prober.list_valid)


@pytest.mark.parametrize(("runs", "compiled_for"), [(True, [True]), (False, [True, None])])
def test_instructions_whose_code_runs_are_not_probed(
    cache: Path, monkeypatch: pytest.MonkeyPatch, *, runs: bool, compiled_for: list[bool | None]
) -> None:
    """Where it does not run, each is probed as torch does, and one that fails is not believed."""
    prober = Prober({"avx512", "avx2"} if runs else {"avx2"})
    use(prober, monkeypatch)
    seen: list[Any] = []

    def compile_trivial(_device: object) -> None:
        seen.append(torch._inductor.config.cpp.vec_isa_ok)
        if not runs and seen == [True]:
            raise RuntimeError("undefined symbol: Sleef_expf16_u10")

    monkeypatch.setattr(toolchain, "_compile_trivial", compile_trivial)
    toolchain.prime_toolchain(CpuDevice())
    assert (seen, prober.saw_ok) == (compiled_for, compiled_for)
    assert [path.read_text() for path in cache.glob("*")] == ["avx512\navx2"] * runs


def test_all_that_passed_are_believed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker on a marked cache asks for no probe."""
    prober = Prober({"avx512", "avx2"})
    use(prober, monkeypatch)
    probe_isas()
    assert [path.read_text() for path in cache.iterdir()] == ["avx512\navx2"]
    load_toolchain(CpuDevice())
    assert prober.saw_ok == [None, True]


def test_where_one_fails_each_process_probes(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that lacks an instruction set leaves no mark, and removes an older one."""
    use(Prober({"avx512", "avx2"}), monkeypatch)
    probe_isas()
    prober = Prober({"avx2"})
    use(prober, monkeypatch)
    probe_isas()
    assert list(cache.iterdir()) == []
    load_toolchain(CpuDevice())
    assert prober.saw_ok == [None, None]


def test_a_torch_that_does_not_report(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torch's own lists nothing is marked and nothing breaks."""
    monkeypatch.setattr("gate.measure.private.importlib", SimpleNamespace(import_module=lambda _: object()))
    probe_isas()
    load_toolchain(CpuDevice())
    assert not cache.exists()
