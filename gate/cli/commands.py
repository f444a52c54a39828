"""All commands as a table: one row a command; imports nothing heavy."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from gate.cli import arguments, github_arguments, measuring_arguments
from gate.errors import ExitCode

_VERDICT = (
    *(ExitCode.NOTHING_COMPARED, ExitCode.MACHINE),
    *(ExitCode.REGRESSION, ExitCode.INCONCLUSIVE, ExitCode.INCOMPLETE),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """One command: how it is called, what it says of itself and the function that does it.

    ``success`` is what exit 0 means, ``codes`` are the others that it can end with besides
    :data:`COMMON_CODES`. A command with ``actions`` is their parent only.
    """

    name: str  # with the parent's before it: "baseline show"
    summary: str
    example: str
    success: str = ""
    codes: tuple[ExitCode, ...] = ()
    run: str = ""  # "module:function", imported when the command is chosen
    add_arguments: Callable[[argparse.ArgumentParser], None] | None = None
    actions: tuple[Command, ...] = ()
    holds_token: bool = False  # what it prints is made harmless: see gate.github.log


_BASELINE = (
    Command(
        name="baseline refresh",
        summary="measure and record this environment's baselines",
        example="compile-gate baseline refresh --trials 5",
        success="every selected case was measured and its baseline written",
        codes=(ExitCode.MACHINE,),
        run="gate.cli.baseline:run_refresh",
        add_arguments=measuring_arguments.add_refresh,
    ),
    Command(
        name="baseline show",
        summary="list the stored baselines with age and origin",
        example="compile-gate baseline show --select 'bert/*'",
        success="there are some, and they were listed",
        codes=(ExitCode.NOTHING_COMPARED,),
        run="gate.cli.baseline:run_show",
        add_arguments=arguments.add_show,
    ),
    Command(
        name="baseline accept",
        summary="accept a known change until a date",
        example="compile-gate baseline accept bert/x drift --allow 0.5 --reason '...' --expires 2027-03-31",
        success="the acceptance was written",
        codes=(ExitCode.MACHINE,),
        run="gate.cli.baseline:run_accept",
        add_arguments=arguments.add_accept,
    ),
    Command(
        name="baseline anchor",
        summary="name the commit that many small changes together are held against",
        example="compile-gate baseline anchor v1.2 --reason 'the release of March'",
        success="the anchor was written",
        codes=(ExitCode.MACHINE,),
        run="gate.cli.anchor:run_anchor",
        add_arguments=arguments.add_anchor,
    ),
)

COMMANDS = (
    Command(
        name="init",
        summary="write gate.yml, a factory and workflows for a module of yours",
        example="compile-gate init my_package.model:MyModel",
        success="the module was built and called, and what was missing was written; nothing was overwritten",
        codes=(ExitCode.MACHINE,),
        run="gate.cli.init:run_init",
        add_arguments=arguments.add_init,
    ),
    Command(
        name="check",
        summary="measure, judge against the stored baselines, report: the main job",
        example="compile-gate check --select tag:smoke",
        success="PASS: every planned case was measured, and nothing that has a baseline regressed",
        codes=_VERDICT,
        run="gate.cli.check:run_check",
        add_arguments=measuring_arguments.add_check,
    ),
    Command(
        name="ab",
        summary="measure two commits, directories or interpreters side by side",
        example="compile-gate ab main --select 'bert/*'",
        success="PASS: every planned case was measured, and nothing that the base has regressed",
        codes=_VERDICT,
        run="gate.cli.ab:run_ab",
        add_arguments=measuring_arguments.add_ab,
    ),
    Command(
        name="bisect",
        summary="find the first commit, or interpreter, at which a case got worse",
        example="compile-gate bisect --good v1.0 --bad main bert/inference-float32-smoke-default",
        success="the first bad one was found, and seen again side by side with the one before it",
        codes=(ExitCode.MACHINE, ExitCode.INCONCLUSIVE, ExitCode.INCOMPLETE),
        run="gate.cli.bisect:run_bisect",
        add_arguments=measuring_arguments.add_bisect,
    ),
    Command(
        name="measure",
        summary="measure only; writes out/run.json",
        example="compile-gate measure --select 'bert/*' --trials 3",
        success="every planned case was measured; nothing was judged",
        codes=(ExitCode.MACHINE, ExitCode.INCOMPLETE),
        run="gate.cli.check:run_measure",
        add_arguments=measuring_arguments.add_measure,
    ),
    Command(
        name="compare",
        summary="judge one stored run against another, or against baselines",
        example="compile-gate compare old/run.json new/run.json",
        success="PASS: the run is whole, and nothing that has a baseline regressed",
        codes=_VERDICT,
        run="gate.cli.compare:run_compare",
        add_arguments=arguments.add_compare,
    ),
    Command(
        name="baseline",
        summary="record, show or accept baselines, or anchor a release",
        example="compile-gate baseline refresh --trials 5",
        actions=_BASELINE,
    ),
    Command(
        name="calibrate",
        summary="measure unchanged code often: noise, unstable cases, what the gate can see here",
        example="compile-gate calibrate --select 'bert/*' --trials 12",
        success="every planned case was measured, and often enough to say something",
        codes=(ExitCode.MACHINE, ExitCode.INCOMPLETE),
        run="gate.cli.calibrate:run_calibrate",
        add_arguments=measuring_arguments.add_calibrate,
    ),
    Command(
        name="selftest",
        summary="plant known faults into your models and count which ones the gate catches",
        example="compile-gate selftest --select 'bert/*' --minutes 30",
        success="every fault was tried, and all that must be caught were",
        codes=(ExitCode.MACHINE, ExitCode.REGRESSION, ExitCode.INCOMPLETE),
        run="gate.cli.selftest:run_selftest",
        add_arguments=measuring_arguments.add_selftest,
    ),
    Command(
        name="report",
        summary="render a verdict again",
        example="compile-gate report out/verdict.json --format markdown",
        success="the verdict was rendered, whatever it says",
        codes=(ExitCode.MACHINE,),
        run="gate.cli.compare:run_report",
        add_arguments=arguments.add_report,
    ),
    Command(
        name="trend",
        summary="render a history of runs as pages: values over time, where they changed, since when",
        example="compile-gate trend perf/history --out site",
        success="the pages were written; damaged lines of the history are told",
        codes=(ExitCode.NOTHING_COMPARED, ExitCode.MACHINE),
        run="gate.cli.trend:run_trend",
        add_arguments=arguments.add_trend,
    ),
    Command(
        name="explain",
        summary="tell the whole story of one case: numbers, causes, changed code, how to see it again",
        example="compile-gate explain bert out/verdict.json",
        success="the story was told, whatever the verdict says",
        codes=(ExitCode.MACHINE,),
        run="gate.cli.compare:run_explain",
        add_arguments=arguments.add_explain,
    ),
    Command(
        name="models",
        summary="list the cases of the registry, or try them before they are measured",
        example="compile-gate models --try --select tag:smoke",
        success="gate.yml and its registries can be read; with --try, every case can be built and called",
        codes=(ExitCode.MACHINE, ExitCode.INCOMPLETE),
        run="gate.cli.show:run_models",
        add_arguments=arguments.add_models,
    ),
    Command(
        name="plan",
        summary="show what would run, with expected minutes",
        example="compile-gate plan --shards 4 --format github-matrix",
        success="there is at least one case to run",
        run="gate.cli.show:run_plan",
        add_arguments=arguments.add_plan,
    ),
    Command(
        name="merge",
        summary="join the runs of shards",
        example="compile-gate merge shard-*/run.json --select tag:pr --out out",
        success="the runs fit together and were joined, whatever failed in them",
        codes=(ExitCode.MACHINE,),
        run="gate.cli.compare:run_merge",
        add_arguments=arguments.add_merge,
    ),
    Command(
        name="publish",
        summary="in a workflow: post a finished run's verdict on its pull request",
        example="compile-gate publish --run-id 1234567890",
        success="what there is was told; what could not be told is a warning",
        run="gate.cli.publish:run_publish",
        add_arguments=github_arguments.add_publish,
        holds_token=True,
    ),
    Command(
        name="publish-upgrade",
        summary="in a workflow: tell in one issue how an upgrade of the stack went",
        example='compile-gate publish-upgrade --run-id "$GITHUB_RUN_ID" --key h200',
        success="what there is was told; what could not be told is a warning",
        run="gate.cli.publish:run_publish_upgrade",
        add_arguments=github_arguments.add_publish_upgrade,
        holds_token=True,
    ),
    Command(
        name="authorize",
        summary="in a workflow: decide whether what a comment asks for may go on",
        example="compile-gate authorize",
        success="it was decided: the output `authorized` says how",
        run="gate.cli.authorize:run_authorize",
        add_arguments=github_arguments.add_authorize,
        holds_token=True,
    ),
    Command(
        name="accept-regression",
        summary="in a workflow: accept what regressed for one commit, and start its check again",
        example='compile-gate accept-regression --head-sha "$SHA"',
        success="what regressed was accepted, and the check started again",
        run="gate.cli.accept_regression:run_accept_regression",
        add_arguments=github_arguments.add_accept_regression,
        holds_token=True,
    ),
    Command(
        name="propose",
        summary="in a workflow: open a pull request with refreshed baselines",
        example='compile-gate propose --run out/run.json --head-sha "$SHA" --head-ref main',
        success="the baselines were proposed, or nothing changed",
        run="gate.cli.propose:run_propose",
        add_arguments=github_arguments.add_propose,
        holds_token=True,
    ),
    Command(
        name="doctor",
        summary="say whether this machine is fit to judge",
        example="compile-gate doctor --device cuda",
        success="it is",
        codes=(ExitCode.MACHINE,),
        run="gate.cli.show:run_doctor",
        add_arguments=arguments.add_doctor,
    ),
    Command(
        name="first-contact",
        summary="ask a device whether what the gate assumes of it is so",
        example="compile-gate first-contact --device cuda",
        success="all was asked, and nothing that is assumed was refuted",
        codes=(ExitCode.MACHINE, ExitCode.INCOMPLETE),
        run="gate.cli.first_contact:run_first_contact",
        add_arguments=arguments.add_first_contact,
    ),
    Command(
        name="schema",
        summary="print the JSON Schema of a file",
        example="compile-gate schema run",
        success="it was printed",
        run="gate.cli.show:run_schema",
        add_arguments=arguments.add_schema,
    ),
    Command(
        name="config",
        summary="print the configuration in force and where each value comes from",
        example="compile-gate config",
        success="gate.yml can be read, and the configuration was printed",
        run="gate.cli.show:run_config",
        add_arguments=arguments.add_config_command,
    ),
    Command(
        name="completion",
        summary="print what makes a shell complete commands, options, cases and metrics",
        example="compile-gate completion bash",
        success="it was printed",
        run="gate.cli.completion:run_completion",
        add_arguments=arguments.add_completion,
    ),
)
