"""Both sides of every row of exit_codes.md: the way that ends with 0, and the nearest that must not."""

from dataclasses import dataclass, replace

from gate.records.cases import Metric
from tests.unit.cli.conftest import CASE_ID, CONFIG
from tests.unit.cli.sides import (
    CRASHED,
    MORE,
    RENAMED,
    SAME,
    SLOW,
    SLOWER_S,
    TOMORROW,
    UNSTABLE,
    WITH_GAP,
    YESTERDAY,
    Side,
    accept,
    accept_lack,
    anchor,
    bisect,
    calibrate,
    call,
    change,
    check_branch,
    check_with_base,
    compare_arms,
    compare_with_anchor,
    explain,
    judge,
    judge_by,
    merge,
    plant,
    print_to,
    quarantine,
    read_stored,
    remove_config,
    report_again,
    resume,
    show_none,
    try_faults,
)

HISTORY = (
    '{"schema":"compile-gate/history/1","id":"1","kind":"check","created":"2026-03-01T10:00:00+00:00",'
    '"machine":"cpu: a","cases":{"a/x":{"graph_breaks":[0]}}}\n'
)
FACTORY = "import gate\ndef build():\n    return gate.Workload(forward=len, inputs=((),))\n"


@dataclass(frozen=True, kw_only=True)
class Way:
    """Both sides of a row; the good one prints ``says``."""

    good: Side
    bad: Side
    says: str = ""


# What several rows end with 0 by: it is played once for all of them.
PASSING = judge(SAME)
FINDING = bisect("graph_break")
HOLDING = compare_with_anchor("", 0.0)
CATCHING = try_faults()

WAYS = {
    "pass": Way(good=PASSING, bad=judge(SLOW), says="PASS"),
    "settled": Way(good=PASSING, bad=judge(UNSTABLE)),
    "whole-cases": Way(good=PASSING, bad=judge(CRASHED)),
    "whole-plan": Way(good=PASSING, bad=judge(WITH_GAP)),
    "whole-selection": Way(good=PASSING, bad=judge(RENAMED)),
    "whole-trials": Way(good=PASSING, bad=judge(replace(SAME, trials=SAME.trials[:4]))),
    "whole-run": Way(good=PASSING, bad=judge(replace(SAME, finished=False))),
    "whole-baseline": Way(good=PASSING, bad=judge_by(replace(SAME, finished=False))),
    "whole-metrics": Way(good=PASSING, bad=judge(change(SAME, Metric.GRAPH_BREAKS))),
    "something-judged": Way(good=judge(MORE), bad=accept_lack(), says="2 of 3 comparisons"),
    "everything-judged": Way(good=judge(SAME, "--fail-on", "new"), bad=judge(MORE, "--fail-on", "new")),
    "readable-baselines": Way(good=read_stored(is_link=False), bad=read_stored(is_link=True)),
    "accepted": Way(good=accept(TOMORROW), bad=accept(YESTERDAY), says="ccepted by ada"),
    "quarantined": Way(good=quarantine(TOMORROW), bad=quarantine(YESTERDAY), says="uarantine"),
    "lack-accepted": Way(
        good=accept_lack("--accepted", "commit.yml"),
        bad=accept_lack(),
        says="!! NOTHING_COMPARED, BUT EXIT 0",
    ),
    "fail-on-regression": Way(
        good=judge(UNSTABLE, "--fail-on", "regression"),
        bad=judge(SLOW, "--fail-on", "regression"),
        says="!! INCONCLUSIVE, BUT EXIT 0",
    ),
    "fail-on-never": Way(
        good=judge(CRASHED, "--fail-on", "never"),
        bad=call("compare", "old.json", "damaged.json", "--fail-on", "never", damaged_json="{"),
        says="!! INCOMPLETE, BUT EXIT 0",
    ),
    "closed-pipe": Way(good=print_to("", SAME), bad=print_to("", SLOW)),
    "full-disk": Way(good=PASSING, bad=print_to("/dev/full", SAME)),
    "named-base": Way(good=check_with_base("main"), bad=check_with_base("")),
    "found-base": Way(good=check_branch("nothing"), bad=check_branch("slowdown"), says="PASS"),
    "own-configuration": Way(good=call("plan"), bad=remove_config, says=CASE_ID),
    "check": Way(good=call("check"), bad=plant("slowdown", SLOWER_S, "check", "--quiet"), says="PASS"),
    "check-crash": Way(good=call("check", "--quiet"), bad=plant("crash", 0.0, "check", "--quiet")),
    "resume": Way(good=resume, bad=call("check", "--quiet", "--resume")),
    "ab": Way(good=compare_arms("", 0.0), bad=compare_arms("slowdown", SLOWER_S)),
    "bisect": Way(good=FINDING, bad=bisect("nothing"), says="first bad"),
    "bisect-crash": Way(good=FINDING, bad=bisect("crash")),
    "ab-anchor": Way(
        good=HOLDING,
        bad=compare_with_anchor("slowdown", SLOWER_S),
        says="against the anchor",
    ),
    "named-anchor": Way(good=HOLDING, bad=call("ab", "--anchor", "--quiet")),
    "measure": Way(good=call("measure", "--quiet"), bad=plant("crash", 0.0, "measure", "--quiet")),
    "refresh": Way(
        good=plant("graph_break", 0.0, "baseline", "refresh", "--quiet", "--reason", "a print"),
        bad=plant("graph_break", 0.0, "baseline", "refresh", "--quiet"),
    ),
    "refresh-crash": Way(
        good=call("baseline", "refresh", "--quiet", "--reason", "again"),
        bad=plant("crash", 0.0, "baseline", "refresh", "--quiet"),
    ),
    "refresh-trials": Way(
        good=call("baseline", "refresh", "--quiet", "--trials", "3", "--reason", "again"),
        bad=call("baseline", "refresh", "--quiet", "--trials", "2"),
    ),
    "show": Way(good=call("baseline", "show"), bad=show_none, says=CASE_ID),
    "accept": Way(
        good=call(
            *("baseline", "accept", "actor/*", "graph_breaks"),
            *("--allow", "1", "--reason", "a print", "--expires", TOMORROW),
        ),
        bad=call(
            *("baseline", "accept", "aktor", "graph_breaks"),
            *("--allow", "1", "--reason", "a print", "--expires", TOMORROW),
        ),
    ),
    "anchor": Way(good=anchor(), bad=anchor("v9"), says="The anchor is"),
    "calibrate": Way(good=calibrate(2), bad=calibrate(1)),
    "selftest": Way(good=CATCHING, bad=try_faults(blind="graph_break")),
    "selftest-time": Way(good=CATCHING, bad=try_faults("--minutes", "0.0001")),
    "selftest-open": Way(
        good=try_faults(fault="slowdown-5%"), bad=try_faults(fault="slowdown-5%", blind="slowdown")
    ),
    "report": Way(good=report_again("told/verdict.json"), bad=report_again("old.json"), says="REGRESSION"),
    "trend": Way(
        good=call("trend", "h.jsonl", h_jsonl=HISTORY),
        bad=call("trend", "h.jsonl", h_jsonl="{"),
        says="Wrote 2 pages of 1 run ",
    ),
    "explain": Way(good=explain("actor"), bad=explain("bert"), says="compiled latency before "),
    "merge": Way(good=merge("new.json"), bad=merge("old.json", "new.json")),
    "models": Way(good=call("models"), bad=call("models", gate_yml=f"{CONFIG}modles: []\n"), says=CASE_ID),
    "plan": Way(good=call("plan"), bad=call("plan", "--select", "actor,!actor"), says=CASE_ID),
    "first-contact": Way(
        good=call("first-contact", "--device", "cpu", "--only", "the_host_clock_resolves_a_microsecond"),
        bad=call("first-contact", "--device", "cuda:63"),
        says="1 PASSED, 0 FAILED",
    ),
    "init": Way(
        good=call("init", "beginner:build", beginner_py=FACTORY),
        bad=call("init", "beginner:build", beginner_py="import no_such_package\n"),
        says="compile-gate check",
    ),
    "completion": Way(good=call("completion", "bash"), bad=call("completion", "bsh"), says="compile-gate"),
    "schema": Way(good=call("schema", "run"), bad=call("schema", "rnu")),
    "config": Way(good=call("config"), bad=call("config", gate_yml="version: 1\n  trials: [\n")),
    "help": Way(good=call("check", "--help"), bad=call("check", "--hlep")),
}
