"""The table of full sizes compiled for targets: what is left, and the results."""

from typing import Any

from target_sizes import COLUMNS, choose_cases, list_missing, render_sizes

VERSIONS = {"torch": "2.13.0", "triton": "3.8.0"}
CASES = choose_cases()


def make_line(target: str = "cuda:sm_90", **changes: Any) -> dict[str, Any]:
    spent = {"import_s": 6.0, "build_s": 3.0, "compile_s": 21.0}
    same = {"case": CASES[0].id, "target": target, "identity": "abc", "binaries": "def"}
    return {**VERSIONS, **dict.fromkeys(COLUMNS.values(), 1500), **spent, **same, **changes}


def test_each_model_is_compiled_once_for_each_task_in_bfloat16_if_it_can() -> None:
    """Full sizes in the default mode, inference first."""
    assert len({(case.model, case.task) for case in CASES}) == len(CASES)
    assert {case.size for case in CASES} == {"full"}
    assert [case.task for case in CASES] == sorted(case.task for case in CASES)
    assert {case.dtype for case in CASES if case.model == "bert"} == {"bfloat16"}


def test_what_is_done_is_not_done_again() -> None:
    """Each target is compiled twice; results of another torch do not count."""
    done = [make_line(), make_line("cuda:sm_80"), make_line("cuda:sm_80", torch="2.12.0")]
    missing = [target for _, target in list_missing(CASES[:1], done, VERSIONS)]
    assert missing == ["cuda:sm_80", "cuda:sm_90"]
    assert not list(list_missing(CASES[:1], done * 2, VERSIONS))


def test_a_difference_between_two_compiles_is_shown() -> None:
    """The table shows the same twice, once only, or different, and what is missing."""
    rows = [
        *[make_line("cuda:sm_80")] * 2,
        *[make_line(), make_line(binaries="other")],
        make_line(case=CASES[1].id),
    ]
    table = render_sizes(rows).splitlines()
    assert [line.split(" | ")[-1] for line in table[2:5]] == ["yes |", "**no** |", "compiled once |"]
    assert "| 1,500 |" in table[2]
    assert "| 0.5 |" in table[2]  # 30 s
    assert table[-1].startswith("Not compiled yet: ")
    assert "`cuda:sm_80`" in table[-1]
