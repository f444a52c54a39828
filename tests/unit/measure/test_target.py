"""The counts of code that is compiled for a target, and what a target cannot know."""

import sys
from importlib import metadata
from pathlib import Path

import pytest

from gate.errors import MachineError, UsageError
from gate.measure.device import imitation
from gate.measure.device.imitation import imitate_gpu
from gate.measure.identity import count_launches
from gate.measure.target import Cubin, check_knowable, parse_usage, sum_cubins
from gate.records.cases import Case, Metric, Mode

TOLD = """
Resource usage:
 Common:
  GLOBAL:0
 Function triton_poi_fused_add_0:
  REG:12 STACK:8 SHARED:1024 LOCAL:16 CONSTANT[0]:568 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
GRAPH = """\
triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', '''
def triton_poi_fused_add_0(out):
    helper.run(1)
''', device_str='cuda')
async_compile.wait(globals())
def call(args):
        # extern_kernels.mm(a, b, out=buf0)
        extern_kernels.mm(a, b, out=buf0)
        triton_poi_fused_add_0.run(buf0, 64, stream=stream0)
        buf1 = torch.ops.aten.sort.default(buf0)
        triton_poi_fused_add_0.run(buf1, 64, stream=stream0)
        buf2 = reinterpret_tensor(buf1, (8, 8), (8, 1), 0)
"""
CASE = Case(id="toy/x", model="toy", factory="toy:build")


def make_cubin(kernel: str, *, registers: int = 10, stack_bytes: int = 0) -> Cubin:
    """A binary of 100 bytes that takes 64 bytes of shared memory."""
    return Cubin(kernel=kernel, registers=registers, shared_bytes=64, stack_bytes=stack_bytes, size_bytes=100)


def test_registers_and_stack_are_read_from_the_tools_output() -> None:
    """Stack and local memory are both a thread's own memory; shared memory is Triton's figure."""
    assert parse_usage(TOLD) == (12, 24)


def test_a_tool_that_prints_nothing_is_no_zero() -> None:
    """Another format of the tool fails the case, instead of counting 0 registers."""
    with pytest.raises(ValueError, match="no resource usage"):
        parse_usage("Resource usage:\n none")


def test_a_kernel_counts_with_the_least_stack_of_its_configurations() -> None:
    """Registers, memory and sizes are sums over binaries; tuning would not choose one that spills."""
    cubins = [
        make_cubin("a", registers=32, stack_bytes=48),
        make_cubin("a", registers=40, stack_bytes=16),
        make_cubin("b", registers=8, stack_bytes=4),
    ]
    assert sum_cubins(cubins) == {
        Metric.TRITON_CONFIGS: 3,
        Metric.REGISTERS: 80,
        Metric.SHARED_MEMORY: 192,
        Metric.STACK_MEMORY: 20,
        Metric.CUBIN_BYTES: 300,
    }


def test_launches_are_those_of_the_call(tmp_path: Path) -> None:
    """Kernels and library calls count each time; comments, sources and views do not."""
    (tmp_path / "graph.py").write_text(GRAPH)
    (tmp_path / "kernel.py").write_text("    other.run(1)\n")
    assert count_launches(tmp_path) == 4


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (Case(id="a", model="a", mode=Mode.MAX_AUTOTUNE), "chosen by timing"),
        (Case(id="a", model="a", mode=Mode.MAX_AUTOTUNE_NO_CUDAGRAPHS), "chosen by timing"),
        (Case(id="a", model="a", options={"max_autotune_gemm": True}), "chosen by timing"),
        (Case(id="a", model="a", options={"coordinate-descent-tuning": True}), "chosen by timing"),
        (Case(id="a", model="a", mode=Mode.REDUCE_OVERHEAD), "CUDA graphs are captured"),
    ],
)
def test_what_is_chosen_on_the_device_is_unavailable(case: Case, why: str) -> None:
    """It fails with its reason and fix; a guess would be judged as a known value."""
    with pytest.raises(UsageError, match=f"UNAVAILABLE: .*{why}") as caught:
        check_knowable(case)
    assert "!a" in str(caught.value.fix)


def test_a_plain_case_is_available() -> None:
    """The code alone decides its counts."""
    check_knowable(CASE)


def test_an_unknown_target_is_refused() -> None:
    """The compiler must know the board."""
    with pytest.raises(MachineError, match="no such target: cuda:sm_71"):
        imitate_gpu("cuda:sm_71")


def test_a_target_is_imitated_before_torch_is_imported() -> None:
    """Torch looks for devices at its import, which has happened here."""
    with pytest.raises(RuntimeError, match="before"):
        imitate_gpu("cuda:sm_90")


def test_nothing_is_pretended_where_torch_knows_real_devices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One process cannot have two answers to which device there is."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libtorch_cuda.so").touch()
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(imitation, "_get_torch_directory", lambda: tmp_path)
    with pytest.raises(MachineError, match="built for CUDA"):
        imitate_gpu("cuda:sm_90")


@pytest.mark.parametrize(
    ("version", "named"),
    [
        ("2.11.0+cpu", "this torch is 2.11"),
        ("2.130.0", "this torch is 2.130"),
    ],
)
def test_nothing_is_pretended_where_nobody_tried_torch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, named: str
) -> None:
    """Another release may ask the device for something else, and get a wrong answer without an error."""
    monkeypatch.setattr(metadata, "version", lambda _: version)
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(imitation, "_get_torch_directory", lambda: tmp_path)
    with pytest.raises(MachineError, match=named) as caught:
        imitate_gpu("cuda:sm_90")
    assert caught.value.fix.startswith("Install a CPU build of torch 2.13")


@pytest.mark.parametrize("planted", ["writable", "link"])
def test_no_library_is_loaded_from_where_others_can_write(tmp_path: Path, planted: str) -> None:
    """Its name can be guessed: another user's file would be run."""
    hooks = tmp_path / "hooks"
    (tmp_path / "theirs").mkdir(mode=0o700)
    if planted == "link":
        hooks.symlink_to(tmp_path / "theirs")
    else:
        hooks.mkdir()
        hooks.chmod(0o777)
    with pytest.raises(MachineError, match="other users can write to"):
        imitation._make_private(hooks)
    assert imitation._make_private(tmp_path / "own").stat().st_mode & 0o777 == 0o700


def test_the_torch_of_ci_is_one_that_targets_were_tested_with() -> None:
    """A newer one in constraints.txt needs the slow tests of targets to pass, and this list to grow."""
    constraints = Path(__file__).parents[3].joinpath("constraints.txt").read_text(encoding="utf-8")
    assert f"torch=={imitation.TESTED[-1]}." in constraints
