"""Reading the compiler's records."""

import traceback
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch._dynamo.utils import CompilationMetrics
from torch.utils._traceback import shorten_filename

from gate.measure import graph
from gate.measure.private import PrivateName
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import CacheUse, Recompile
from gate.report.words.facts import describe_measuring


def make_frame(file: str, line: int) -> traceback.FrameSummary:
    return traceback.FrameSummary(file, line, "forward")


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        pytest.param("/home/me/project/model.py", "model.py:7", id="below the measured directory"),
        pytest.param("/usr/lib/python/site-packages/timm/vit.py", "timm/vit.py:7", id="in a library"),
        pytest.param(
            "/home/me/project/.venv/lib/site-packages/timm/vit.py", "timm/vit.py:7", id="in its environment"
        ),
        pytest.param("/elsewhere/model.py", "/elsewhere/model.py:7", id="elsewhere"),
    ],
)
def test_places_do_not_name_the_machine(file: str, expected: str) -> None:
    """A location is the same on another machine where it can be."""
    assert expected == graph.format_location(file, 7, "/home/me/project")


def test_paths_next_to_gate_yml_are_relative_in_each_checkout(tmp_path: Path) -> None:
    """A gate.yml in a directory of its own, next to the model's, gives one path in two checkouts."""
    for checkout in (tmp_path / "base", tmp_path / "head"):
        (checkout / "ci").mkdir(parents=True)
        (checkout / ".git").touch()  # as a worktree has it
        location = graph.format_location(str(checkout / "src" / "model.py"), 7, str(checkout / "ci"))
        assert location == "../src/model.py:7"


def test_location_is_the_users_innermost_line() -> None:
    """Torch's own frames are not what the user can change."""
    stack = [make_frame("/p/a.py", 1), make_frame("/p/b.py", 2), make_frame(f"{torch.__path__[0]}/nn.py", 3)]
    entry = SimpleNamespace(reason="a reason", user_stack=stack)
    assert graph._describe_break(entry, "/p").location == "b.py:2"


def test_a_break_in_a_package_named_like_torch_is_placed_there() -> None:
    """Torchvision lies next to torch, and is none of torch's own code."""
    stack = [make_frame("/p/a.py", 1), make_frame(f"{torch.__path__[0]}vision/ops/boxes.py", 80)]
    entry = SimpleNamespace(reason="a reason", user_stack=stack)
    assert graph._describe_break(entry, "/p").location == "torchvision/ops/boxes.py:80"


def test_a_break_names_its_function_and_its_number_in_torchs_registry() -> None:
    """After another break the function keeps its name; the number is in its page's address."""
    resumed = traceback.FrameSummary("/p/a.py", 3, "torch_dynamo_resume_in_build_at_12")
    reason = "Failed to trace\n visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html"
    graph_break = graph._describe_break(SimpleNamespace(reason=reason, user_stack=[resumed]), "/p")
    assert graph_break.innermost is not None
    assert (graph_break.innermost.function, graph_break.registry) == ("build", "GB0059")


def test_a_break_in_torchs_own_code_alone_is_placed_there() -> None:
    """No line of the user's is on the stack: torch's innermost one counts."""
    frames = [make_frame(f"{torch.__path__[0]}/nn/{name}.py", 7) for name in ("outer", "inner")]
    graph_break = graph._describe_break(SimpleNamespace(reason="a reason", user_stack=frames), "/p")
    assert (graph_break.location, graph_break.stack) == ("torch/nn/inner.py:7", ())


def test_a_hostile_name_is_cut() -> None:
    """A name of a million characters would fill each report."""
    frame = traceback.FrameSummary("/p/a.py", 3, "f" * 1_000_000)
    graph_break = graph._describe_break(SimpleNamespace(reason="a reason", user_stack=[frame]), "/p")
    assert graph_break.innermost is not None
    assert len(graph_break.innermost.function) == graph.MAX_CODE


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


def test_what_torch_does_not_report_is_not_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch without the records gives no counts, and names the missing ones."""
    monkeypatch.setattr(PrivateName, "find", lambda _: None)
    report = graph.observe_graphs("")
    assert {} == dict(report.counts)
    assert report.unknown[0] == Fact(code=Code.UNKNOWN_HERE, metrics=(Metric.GRAPH_BREAKS,))
    assert len(report.unknown) == 8


def test_recompiles_and_skipped_frames_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line each, with the failed guard or the skipped frame, and its location."""
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
    assert report.recompile_reasons == (
        Recompile(guard="size 3 != 4", location="a.py:7", function="forward"),
        Recompile(guard="n == 1", code="y = n * x", location="a.py:8", function="f"),
    )
    assert (2, 9) == (report.counts[Metric.RECOMPILES], report.counts[Metric.GUARDS])
    (left,) = report.skipped
    assert left == Fact(code=Code.LEFT_TO_EAGER, names=name_words(reason="not supported", location="a.py:9"))
    assert describe_measuring(left) == "fell back to eager at a.py:9: not supported"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        pytest.param(
            "0/1: 2 <= x.size()[0] <= 5  # x * n  # comment  # {short}:5 in f (user code shown) and"
            " x * n  # {short}:6 in g (_dynamo/variables/tensor.py:2606 in evaluate_expr)",
            Recompile(
                guard="2 <= x.size()[0] <= 5", code="x * n # comment", location="net/a.py:5", function="f"
            ),
            id="of a size, with two places and torch's own",
        ),
        pytest.param(
            "1/0: s.name == 'a # b'        # if s.name:  # {short}:10 in forward\nUser stack trace:\n  File",
            Recompile(
                guard="s.name == 'a # b'", code="if s.name:", location="net/a.py:10", function="forward"
            ),
            id="with the mark of a comment in its value",
        ),
        pytest.param(
            "1/0: ___check_obj_id(self.fn, 139872)   # self.fn(x)  # {short}:3 in forward",
            Recompile(
                guard="___check_obj_id(self.fn)", code="self.fn(x)", location="net/a.py:3", function="forward"
            ),
            id="an address, of another value in each process",
        ),
        pytest.param(
            "1/0: s.k == 0        # s.k + 1  # {short}:4 in torch_dynamo_resume_in_forward_at_19",
            Recompile(guard="s.k == 0", code="s.k + 1", location="net/a.py:4", function="forward"),
            id="behind a graph break",
        ),
        pytest.param(
            "0/3: tensor 'x' rank mismatch. expected 2, actual 1 (HINT: mark it)",
            Recompile(
                guard="tensor 'x' rank mismatch. expected 2, actual 1",
                location="net/a.py:1",
                function="forward",
            ),
            id="without a line: of the function",
        ),
        pytest.param(
            "0/1: (0.99*s.rate) == 0.096  # (fx/passes/_tensorify_python_scalars.py:429 in tensorify)",
            Recompile(guard="(0.99*s.rate) == 0.096", location="net/a.py:1", function="forward"),
            id="with torch's own place alone: of the function",
        ),
    ],
)
def test_recompile_is_reported_by_guard_line_and_location(
    reason: str, expected: Recompile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As torch 2.13 writes them; its relative path is completed."""
    file = str(tmp_path / "head" / "net" / "a.py")
    reason = reason.format(short=shorten_filename(file))  # type: ignore[no-untyped-call] # torch's
    record = SimpleNamespace(
        recompile_reason=reason, co_filename=file, co_firstlineno=1, co_name="forward", guard_count=1
    )
    monkeypatch.setattr(graph, "_list_compiles", lambda: [record])
    assert graph.observe_graphs(str(tmp_path / "head")).recompile_reasons == (expected,)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (
            "Attempted to call function marked as skipped\n {context}module: posix, qualname: getcwd, skip",
            "Attempted to call function marked as skipped: posix.getcwd",
        ),
        (
            "Failed to trace builtin operator\n  {context}builtin print [<class 'x'>] False",
            "Failed to trace builtin operator: print",
        ),
        (
            "Skip calling `torch.compiler.disable()`d function\n  {context}<function dd at 0>",
            "Skip calling `torch.compiler.disable()`d function: dd",
        ),
        (
            "Call to `torch._dynamo.graph_break()`\n  {context}Called `graph_break()` with",
            "Call to `torch._dynamo.graph_break()`",
        ),
        ("generic_jump TensorVariable()", "Data-dependent branching: TensorVariable()"),
    ],
)
def test_graph_break_names_the_function(reason: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As torch 2.13 writes it: the first line is the kind of break, a later one names the function.

    Of a branch on a tensor's value it records a function of its own.
    """
    reason = reason.format(context="Developer debug context: ")
    breaks = [SimpleNamespace(reason=reason, user_stack=())]
    monkeypatch.setattr(torch._dynamo.utils, "graph_break_reasons", breaks)
    assert [graph_break.reason for graph_break in graph.observe_graphs("").graph_breaks] == [expected]


@pytest.mark.parametrize(
    ("graphs", "kernels", "expected"),
    [
        # As a process on an H100 counts that finds all: a kernel, asked for now and when it was compiled.
        (Counter(fxgraph_cache_hit=1), (1, 2), CacheUse(hits=1)),
        # Both graphs were found, one without its bundle: of nine kernels that were asked for two are new.
        (Counter(fxgraph_cache_hit=2), (7, 18), CacheUse(hits=7, misses=2)),
        (Counter(fxgraph_cache_miss=2), (0, 9), CacheUse(misses=9)),
        (
            Counter(fxgraph_cache_hit=1, fxgraph_cache_miss=1),
            (7, 16),
            None,
        ),  # of which graph each is: unknown
    ],
)
def test_kernels_that_are_compiled_though_their_graph_was_found_are_counted(
    graphs: Counter[str], kernels: tuple[int, int], expected: CacheUse | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torch counts each as missed, found ones too, and again what a found graph compiled."""
    hits, misses = kernels
    counters = {
        "frames": Counter(total=1, ok=1),
        "stats": Counter(unique_graphs=2),
        "inductor": graphs + Counter(async_compile_cache_hit=hits, async_compile_cache_miss=misses),
        "aot_autograd": Counter(),
    }
    monkeypatch.setattr(graph, "_get_counters", lambda: counters)
    bundles = [SimpleNamespace(num_triton_bundles=1), SimpleNamespace(num_triton_bundles=None)]
    monkeypatch.setattr(graph, "_list_compiles", lambda: bundles)
    report = graph.observe_graphs("")
    assert report.caches.get("kernel") == expected
    assert report.caches["triton_bundle"] == CacheUse(hits=1)
    assert report.cache.hits == graphs["fxgraph_cache_hit"]  # a metric of graphs: what was found stays found


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
    """A model's exception is not the stance's own."""
    assert graph.is_recompile_error(RuntimeError("Detected recompile when ... 'fail_on_recompile'. file"))
    assert not graph.is_recompile_error(RuntimeError("shapes do not match"))
