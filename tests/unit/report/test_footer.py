"""The lines on device, commit, baselines, pairs and scope."""

from collections.abc import Mapping
from dataclasses import replace

from gate.records.run import Provenance
from gate.records.verdict import MachineShift, Tally, Verdict
from gate.report.content import describe_machine, list_scope
from gate.report.footer import describe_commit, describe_hardware, describe_software, list_footer


def test_a_gpu_is_named_with_its_host(verdicts: Mapping[str, Verdict]) -> None:
    """Device, host and clock policy are named."""
    gpu = replace(
        verdicts["pass"].environment,
        device_kind="cuda",
        device_model="NVIDIA A100",
        clocks="locked 1410 MHz",
        triton="3.9.0",
        cuda="13.2",
        driver="580.1",
    )

    assert (
        describe_hardware(gpu)
        == "cuda: NVIDIA A100, AMD EPYC 7B13, 2 cores, 2 threads, avx2, locked 1410 MHz"
    )
    assert describe_software(gpu).startswith(
        "torch 2.13.0+cpu, triton 3.9.0, CUDA 13.2, driver 580.1, python 3.11"
    )


def test_a_target_is_named_without_the_host_that_compiles(verdicts: Mapping[str, Verdict]) -> None:
    """The target's board is named; the host and its speed are not."""
    target = replace(
        verdicts["pass"].environment,
        device_kind="target",
        device_model="cuda:sm_90",
        device_traits={"board": "NVIDIA H100 80GB HBM3"},
    )

    assert describe_hardware(target) == "target: cuda:sm_90, as NVIDIA H100 80GB HBM3"
    assert "machine" in dict(list_scope(verdicts["pass"]))
    assert "machine" not in dict(list_scope(replace(verdicts["pass"], environment=target)))


def test_commit_says_what_is_not_committed() -> None:
    """Uncommitted changes are named, and a missing commit too."""
    actual = [
        describe_commit(Provenance(commit="0123456789abcdef", dirty=True)),
        describe_commit(Provenance()),
    ]

    assert actual == ["0123456789 with uncommitted changes", "unknown (not a git checkout)"]


def test_baselines_of_several_ages(verdicts: Mapping[str, Verdict]) -> None:
    """Newest and oldest, the newest's commit and the number of environments."""
    old = Provenance(commit="aaaaaaaaaaaa", created="2026-01-19T09:00:00Z", author="Old")
    verdict = verdicts["pass"]
    mixed = replace(
        verdict,
        baseline_provenance=(old, *verdict.baseline_provenance),
        baseline_environments=("a", "b", "c", "d", "e"),
    )

    expected = (
        "newest 12 days old, oldest 60 days old, 2 commits, newest 1a2b3c4d5e, by the maintainers,"
        " recorded on a and b and c and 2 more"
    )
    assert expected == dict(list_footer(mixed))["baselines"]


def test_without_baselines_it_says_so(verdicts: Mapping[str, Verdict]) -> None:
    """Without baselines the line says so."""
    assert dict(list_footer(verdicts["nothing_compared"]))["baselines"] == "none apply"


def test_the_base_names_its_pairs(verdicts: Mapping[str, Verdict]) -> None:
    """Pairs, cases and pairs in turn, or none."""
    checked = verdicts["side_by_side"]
    in_turn = replace(checked, tally=replace(checked.tally, pairs_in_turn=2))
    none = replace(checked, tally=Tally())

    label = "merge-base with main (5d6e7f8)"
    assert dict(list_footer(in_turn))["base"] == (
        f"{label}, side by side in 6 pairs of 1 case, 2 of them one process after the other"
    )
    assert dict(list_footer(none))["base"] == f"{label}, no pair was measured"


def test_no_overhead_without_a_wall_time(verdicts: Mapping[str, Verdict]) -> None:
    footer = dict(list_footer(replace(verdicts["pass"], wall_s=0.0)))

    assert footer["run"] == "3 trials of 3 cases in 0.0 s: warm-up 9.3 s"


def test_the_machine_share() -> None:
    """Known shares have a sign; unknown ones are left out."""
    shift = MachineShift(canary=0.052, suite=-0.011, known=True)

    assert describe_machine(shift).startswith("fixed test programs +5.2 %, eager -1.1 % since")
    assert not describe_machine(MachineShift())


def test_pairs_alone_leave_nothing_of_the_machine_to_be_separated(verdicts: Mapping[str, Verdict]) -> None:
    """With pairs alone the machine is the same for base and head."""
    checked = verdicts["side_by_side"]
    pairs = replace(checked, comparisons=tuple(row for row in checked.comparisons if row.pairs))

    text = "the same for base and head, which were measured side by side"
    assert dict(list_scope(checked))["machine"].startswith("fixed test programs +0.40 %")
    assert dict(list_scope(pairs))["machine"] == text


def test_judged_and_only_measured(verdicts: Mapping[str, Verdict]) -> None:
    """On another machine the report lists judged and merely measured metrics."""
    scope = dict(list_scope(verdicts["other_machine"]))

    assert scope["judged"].startswith("6 metrics of 3 cases: peak memory, memory ratio, drift")
    assert scope["measured"] == "4 metrics of 3 cases, not judged"
