"""Reading the compiler's records."""

from __future__ import annotations

import traceback
from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from torch._dynamo.utils import CompilationMetrics

from gate.measure.compiler import graph
from gate.records import CacheUse, Code, Fact, Metric, name_words
from gate.report.words.measuring import describe_measuring


def make_frame(file: str, line: int) -> traceback.FrameSummary:
    """Return one frame of a stack."""
    return traceback.FrameSummary(file, line, "forward")


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        pytest.param("/home/me/project/model.py", "model.py:7", id="below the measured directory"),
        pytest.param("/usr/lib/python/site-packages/timm/vit.py", "timm/vit.py:7", id="in a library"),
        pytest.param("/elsewhere/model.py", "/elsewhere/model.py:7", id="elsewhere"),
    ],
)
def test_places_do_not_name_the_machine(file: str, expected: str) -> None:
    """A location is the same on another machine where it can be."""
    assert expected == graph.format_location(file, 7, "/home/me/project")


def test_location_is_the_users_innermost_line() -> None:
    """Torch's own frames are not what the user can change."""
    stack = [make_frame("/p/a.py", 1), make_frame("/p/b.py", 2), make_frame(f"{torch.__path__[0]}/nn.py", 3)]
    assert graph.find_location(stack, "/p") == "b.py:2"


def test_nothing_compiled_is_all_zero() -> None:
    """Before anything is compiled there is no graph, no frame and no recompile."""
    graph.start_observation()
    report = graph.observe_graphs("")
    expected = {
        Metric.UNIQUE_GRAPHS: 0,
        Metric.EAGER_FALLBACKS: 0,
        Metric.RECOMPILES: 0,
        Metric.GRAPH_BREAKS: 0,
        Metric.CAPTURED_OPS: 0,
        Metric.GUARDS: 0,
        Metric.CUDAGRAPH_SKIPS: 0,
        Metric.CUDAGRAPH_PARTITIONS: 0,
    }
    assert expected == dict(report.counts)
    assert CacheUse(hits=0, misses=0) == report.cache


def test_what_torch_does_not_tell_is_not_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch without the records gives no counts, and says which are missing."""
    monkeypatch.setattr(graph, "find_private", lambda *_: None)
    report = graph.observe_graphs("")
    assert {} == dict(report.counts)
    assert report.unknown[0] == Fact(code=Code.UNKNOWN_HERE, metrics=(Metric.GRAPH_BREAKS,))
    assert len(report.unknown) == 8


def test_recompiles_and_skipped_frames_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line each: the guard that failed and where, and what was left to eager where."""
    records = [
        SimpleNamespace(recompile_reason=None, guard_count=4),
        SimpleNamespace(
            recompile_reason="0/0: size 3 != 4\nmore",
            guard_count=5,
            co_filename="/p/a.py",
            co_firstlineno=7,
            co_name="forward",
        ),
        SimpleNamespace(recompile_reason="1/1: n == 1     # y = n * x  # a.py:8 in f (HINT: mark it)"),
        SimpleNamespace(
            fail_reason="not supported\nHint", fail_user_frame_filename="/p/a.py", fail_user_frame_lineno=9
        ),
    ]
    monkeypatch.setattr(graph, "_list_compiles", lambda: records)
    graph.start_observation()
    report = graph.observe_graphs("/p")
    assert ("size 3 != 4 # a.py:7 in forward", "n == 1 # y = n * x # a.py:8 in f") == report.recompile_reasons
    assert (2, 9) == (report.counts[Metric.RECOMPILES], report.counts[Metric.GUARDS])
    (left,) = report.skipped
    assert left == Fact(code=Code.LEFT_TO_EAGER, names=name_words(reason="not supported", location="a.py:9"))
    assert describe_measuring(left) == "fell back to eager at a.py:9: not supported"


def test_kernels_that_are_compiled_though_their_graph_was_found_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both graphs were found, one without its bundle: of nine kernels that were asked for two are new.

    Torch counts all nine as missed, and seven of them as found besides.
    """
    counters = {
        "frames": Counter(total=1, ok=1),
        "stats": Counter(unique_graphs=2),
        "inductor": Counter(fxgraph_cache_hit=2, async_compile_cache_miss=9, async_compile_cache_hit=7),
        "aot_autograd": Counter(),
    }
    monkeypatch.setattr(graph, "_find_counters", lambda: counters)
    bundles = [SimpleNamespace(num_triton_bundles=1), SimpleNamespace(num_triton_bundles=None)]
    monkeypatch.setattr(graph, "_list_compiles", lambda: bundles)
    report = graph.observe_graphs("")
    assert report.caches == {
        "fx_graph": CacheUse(hits=2),
        "kernel": CacheUse(hits=7, misses=2),
        "triton_bundle": CacheUse(hits=1),
    }
    assert report.cache == CacheUse(hits=2)  # a metric of graphs: what was found stays found


def test_each_phase_of_a_gpus_compile_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuning at the first launch and the capture of graphs are in none of the others, in microseconds."""
    records = [
        SimpleNamespace(runtime_triton_autotune_time_us=1_500_000, runtime_cudagraphify_time_us=None),
        SimpleNamespace(runtime_triton_autotune_time_us=500_000, runtime_cudagraphify_time_us=250_000),
        SimpleNamespace(triton_compile_time_us=4_000_000),
    ]
    monkeypatch.setattr(graph, "_list_compiles", lambda: records)
    assert graph.observe_graphs("").phases_s == {
        "triton": 4.0,
        "autotune_at_launch": 2.0,
        "cudagraph_capture": 0.25,
    }


def test_torch_has_what_phases_are_read_from() -> None:
    """A field that torch renames would be a phase that takes no time, on a card only."""
    asked = {*graph._PHASES.values(), "num_triton_bundles"}
    assert asked <= CompilationMetrics.__dataclass_fields__.keys()


def test_recompile_error_is_recognized() -> None:
    """The stance's own exception is told from a model's."""
    assert graph.is_recompile_error(RuntimeError("Detected recompile when ... 'fail_on_recompile'. file"))
    assert not graph.is_recompile_error(RuntimeError("shapes do not match"))
