"""Identity of generated code."""

from pathlib import Path

from gate.measure.identity import compute_identity, count_kernels, list_kernels, normalize_code, read_identity

GRAPH = """\
# AOT ID: ['0_inference']
import torch
cpp_fused_add_0 = async_compile.cpp_pybinding(['float*'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C" void kernel(float* out) {
    #pragma omp parallel
    out[0] += 1;
}
''')
triton_fused_mul_1 = async_compile.triton('triton_fused_mul_1', '''
# kernel path: /cache/a/cabcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopq.py
tl.store(out, x * 2)
''', device_str='cuda')
async_compile.wait(globals())
def call(args):
    # Topologically Sorted Source Nodes: [add], Original ATen: [aten.add]
    cpp_fused_add_0(buf0)
"""
OTHER = "def helper():\n    pass\n"


def test_comments_and_includes_are_not_code() -> None:
    """Another source line in a comment and another path of a header keep the identity."""
    moved = GRAPH.replace("[add]", "[sum]").replace("torch/csrc", "other/csrc").replace("/cache/a", "/b")
    assert compute_identity([GRAPH]) == compute_identity([moved])


def test_order_of_files_does_not_matter() -> None:
    """Files come in the order of a directory listing."""
    second = GRAPH.replace("+= 1", "+= 2")
    assert compute_identity([GRAPH, second]) == compute_identity([second, GRAPH])


def test_changed_kernel_shows_by_name() -> None:
    """A change in one kernel changes the digest and that kernel's hash only."""
    before, after = compute_identity([GRAPH]), compute_identity([GRAPH.replace("x * 2", "x * 3")])
    assert before.digest != after.digest
    changed = {name for name in before.kernels if before.kernels[name] != after.kernels[name]}
    assert {"triton_fused_mul_1"} == changed


def test_changed_host_code_changes_the_digest_only() -> None:
    """The code that calls the kernels is part of the program too."""
    before, after = compute_identity([GRAPH]), compute_identity([GRAPH.replace("(buf0)", "(buf1)")])
    assert before.digest != after.digest
    assert before.kernels == after.kernels


def test_pragmas_are_code() -> None:
    """Parallelism is decided by a line that looks like a comment."""
    changed = GRAPH.replace("#pragma omp parallel", "#pragma omp simd")
    assert compute_identity([GRAPH]).digest != compute_identity([changed]).digest


def test_other_files_have_no_identity() -> None:
    """Helpers in the cache directory are no graphs."""
    assert compute_identity([OTHER]).digest == ""


def test_kernels_are_listed_with_their_source() -> None:
    """Both C++ and Triton kernels are found."""
    kernels = dict(list_kernels(GRAPH))
    assert list(kernels) == ["cpp_fused_add_0", "triton_fused_mul_1"]
    assert "out[0] += 1;" in kernels["cpp_fused_add_0"]


def test_directory_is_searched(tmp_path: Path) -> None:
    """Graphs lie in sub-directories of the cache."""
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / "graph.py").write_text(GRAPH)
    (tmp_path / "ab" / "other.py").write_text(OTHER)
    assert read_identity(tmp_path) == compute_identity([GRAPH])
    assert count_kernels(tmp_path) == 2


def test_blank_lines_are_dropped() -> None:
    """Layout is not code."""
    assert normalize_code("a = 1\n\n  # why\nb = 2  \n") == "a = 1\nb = 2"


CHOICE = """{"XBLOCK": 512, "num_warps": 8, "num_stages": 1, "configs_hash": "1f", "found_by_coordesc": false,
 "time_taken_ms": 12, "triton_cache_hash": "ABC"}"""  # as torch 2.13 writes it


def test_tuned_configurations_are_an_identity_of_their_own(tmp_path: Path) -> None:
    """Another tile is another program of the same code; the tuning's seconds do not count."""
    (tmp_path / "graph.py").write_text(GRAPH)
    plain = read_identity(tmp_path)
    assert plain.tuned == ""
    choice = tmp_path / "ab" / "cabc.best_config"
    choice.parent.mkdir()
    choice.write_text(CHOICE)
    tuned = read_identity(tmp_path)
    assert (tuned.digest, bool(tuned.tuned)) == (plain.digest, True)
    choice.write_text(CHOICE.replace(": 12,", ": 13,").replace("ABC", "DEF"))
    assert read_identity(tmp_path) == tuned
    choice.write_text(CHOICE.replace("512", "256"))
    assert read_identity(tmp_path).tuned != tuned.tuned
    choice.write_text("no JSON")
    assert read_identity(tmp_path).tuned
