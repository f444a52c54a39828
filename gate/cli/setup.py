"""Options and files become the records that every command starts from, and notes of a verdict."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gate.cli.commands import AB_MINUTES
from gate.errors import UsageError
from gate.files.disk import IGNORE_ALL
from gate.files.invalid import suggest_nearest
from gate.git import DIFF, ask_git, find_checkout
from gate.programs import read_text
from gate.project.config import (
    DEFAULT_FILE,
    Config,
    apply_options,
    fit_limits,
    load_config,
    make_default_config,
)
from gate.project.entries import can_decide
from gate.project.plan import pick_shard
from gate.project.registry import load_cases
from gate.project.selection import choose_cases
from gate.records.cases import Case, Metric
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import Run, Shard
from gate.records.verdict import Outcome, Status, Verdict
from gate.report.words.rules import list_rule_notes
from gate.revisions import NothingDiffersError, Revision, get_top
from gate.store.policy import name_gate
from gate.store.rules import AskedRules, BaseRules, BaseTree, load_rules
from gate.units import format_noun

if TYPE_CHECKING:
    from gate.lab.arms.arms import ArmOptions

# Options that stand for a key of gate.yml, under the key's name.
_KEYS = (
    "select", "device", "fail_on", "trials", "counts_only", "lock_timeout_s", "baselines", "out", "history",
)  # fmt: skip
RUN_FILE = "run.json"
# One of them lies where a command has written its results.
_RESULTS = (
    RUN_FILE, "verdict.json", "calibration.json", "selftest.xml", "bisect/.gitignore", "seen/collection.log",
)  # fmt: skip
_OWN_PROJECT = 'name = "compile-gate"'  # in the pyproject.toml of a checkout
_REPEATED = ("config", "baselines", "out", "minutes")  # options, for commands to run next


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    config: Config
    registry: tuple[Case, ...]
    cases: tuple[Case, ...]  # the selected ones
    shard: Shard | None = None  # of what is selected, where they are a part of it
    begun: Run | None = None  # that --resume continues, without its trials
    arms: ArmOptions | None = None  # of a side-by-side run


@contextmanager
def open_rules(options: Namespace) -> Iterator[BaseRules | None]:
    """``None`` where the working tree's apply.

    Raises:
        UsageError: There is no such commit, or its rules cannot be used.
        MachineError: It cannot be checked out.
    """
    sha = _resolve_rules(options) if options.rules else ""
    if not sha:
        yield None
        return
    from gate.lab.arms.base_checkout import open_base_tree  # noqa: PLC0415 - the lab is slow to import

    given = {name: getattr(options, name, None) or "" for name in ("config", "baselines", "select")}
    here = Path.cwd()
    checked_out = (
        BaseTree(sha=sha, tree=Path(options.base_tree), top=get_top(here)) if options.base_tree else None
    )
    with nullcontext(checked_out) if checked_out else open_base_tree(here, sha) as tree:
        rules = load_rules(tree, AskedRules(**given))
        for note in () if checked_out else list_rule_notes(rules):
            print(f"note: {note}", file=sys.stderr)
        yield rules


def _resolve_rules(options: Namespace) -> str:
    """``""`` where it is HEAD itself."""
    from gate.lab.arms.arms import ArmOptions, resolve_arms  # noqa: PLC0415 - the lab is slow to import

    if getattr(options, "reference_models", False):
        what = "--rules: the reference models are measured by no gate.yml of a commit"
        raise UsageError(what, "Leave out --rules or --reference-models.")
    if options.rules != "base":
        return str(options.rules)
    asked = ArmOptions(directory=Path.cwd(), base=getattr(options, "base", "") or "", from_merge_base=True)
    try:
        base, _ = resolve_arms(asked)
    except NothingDiffersError:
        return ""
    if not isinstance(base, Revision):
        raise UsageError(f"--rules base: {options.base} is no commit", "Name a branch or a commit in --base.")
    return base.commit


def load_project(options: Namespace, rules: BaseRules | None = None) -> Project:
    """``rules`` replace gate.yml, registries and selection.

    Raises:
        UsageError: Any of them is wrong; nothing has been written then.
    """
    config = load_configured(options, rules)
    registry = rules.cases if rules else load_cases(config)
    choice = choose_cases(config, registry)
    for note in (choice.note, _note_namesake(config.directory)):
        if note and not getattr(options, "quiet", False):
            print(f"note: {note}", file=sys.stderr)
    config = fit_limits(replace(config, select=choice.selection), choice.cases)
    if part := getattr(options, "shard", None):
        cases, shard = pick_shard(choice.cases, *part)
        return Project(config=config, registry=registry, cases=cases, shard=shard)
    return Project(config=config, registry=registry, cases=choice.cases)


def _note_namesake(directory: Path) -> str:
    """A user's package of this one's name hides it from what is measured."""
    if _OWN_PROJECT in read_text(directory / "pyproject.toml"):  # another checkout than the running one, too
        return ""
    for path in (directory / "gate", directory / "src" / "gate"):
        if (path / "__init__.py").is_file():
            return f"{path} has the name of compile-gate's own package: nothing can import from it"
    return ""


def load_configured(options: Namespace, rules: BaseRules | None = None) -> Config:
    """With the options that replace its keys.

    Raises:
        UsageError: It cannot be used; or there is none, for a command that needs the project's own models.
    """
    asked = getattr(options, "reference_models", None)  # None: of a command that can do without models
    loaded = make_default_config() if asked else None
    config = rules.config if rules else loaded or load_config(options.config)
    if asked is False and not config.is_found:
        fix = "Write one with `compile-gate init package.module:Class`, or add --reference-models."
        raise UsageError(f"{_describe_lack()}: there is nothing to measure", fix)
    if is_surprising(config, options):
        print(f"note: {describe_source(config)}", file=sys.stderr)
    usual = config.out.resolve()
    # The baselines of a commit are those that were asked for already.
    keys = (key for key in _KEYS if not (config.commit and key == "baselines"))
    config = apply_options(config, **{key: getattr(options, key, None) for key in keys})
    if config.is_option("out") and config.out.resolve() != usual:
        _refuse_foreign(config.out)
    # No key of gate.yml: who measures measures on a device.
    return replace(config, device=getattr(options, "target", None) or config.device)


def _refuse_foreign(out: Path) -> None:
    """A report is written over a file of the same name.

    Raises:
        UsageError: The directory has files, and no command of ours has written to it.
    """
    is_ours = read_text(out / ".gitignore") == IGNORE_ALL or any((out / name).exists() for name in _RESULTS)
    if out.is_dir() and any(out.iterdir()) and not is_ours:
        what = f"--out: {out} has files in it that compile-gate did not write"
        raise UsageError(what, "Name a directory that is new, empty, or an earlier run's.")


def parse_metric(name: str, limited: Collection[Metric] = ()) -> Metric:
    """gate.yml has limits for the ``limited`` ones.

    Raises:
        UsageError: It is none.
    """
    deciding = {str(metric): metric for metric in Metric if can_decide(metric, limited)}
    if name not in deciding:
        fix = suggest_nearest(name, deciding, f"Those that decide are {', '.join(deciding)}.")
        raise UsageError(f"METRIC: {name!r} is no metric that decides", fix)
    return deciding[name]


def describe_source(config: Config) -> str:
    if config.is_found:
        return f"using {config.label if config.commit else Path(config.source).resolve()}"
    return f"{_describe_lack()}: defaults, and compile-gate's own reference models"


def _describe_lack() -> str:
    return f"no {DEFAULT_FILE} in {Path.cwd()} or above it"


def is_surprising(config: Config, options: Namespace) -> bool:
    """Whether gate.yml is neither asked for nor in the current directory."""
    if options.config or getattr(options, "reference_models", False):
        return False
    return not config.is_found or config.source != DEFAULT_FILE


def note_origin(verdict: Verdict, config: Config, options: Namespace) -> Verdict:
    """Commands to run next repeat options of this one."""
    if not config.commit:
        return replace(verdict, options=_list_repeated(vars(options)))
    rules = Fact(code=Code.RULES_OF, names=name_words(commit=config.commit))
    return replace(verdict, notes=(*verdict.notes, rules))


def _list_repeated(given: Mapping[str, Any]) -> dict[str, str]:
    named = {f"--{name}": given[name] for name in _REPEATED if given.get(name)}
    if named.get("--minutes") == AB_MINUTES:
        del named["--minutes"]
    if Path(named.get("--config", "")) == Path(DEFAULT_FILE):
        del named["--config"]
    written = {name: value if isinstance(value, str) else f"{value:g}" for name, value in named.items()}
    return written | ({"--reference-models": ""} if given.get("reference_models") else {})


def note_stop(verdict: Verdict, options: Namespace) -> Verdict:
    if not options.fail_fast or verdict.outcome is not Outcome.REGRESSION:
        return verdict
    left = sum(row.decides and row.status is Status.INCONCLUSIVE for row in verdict.comparisons)
    return replace(verdict, notes=(Fact(code=Code.FAIL_FAST, numbers={"comparisons": left}), *verdict.notes))


def note_rules(verdict: Verdict, config: Config, base: str) -> Verdict:
    """Which of its rules differ from those of ``base``, a commit; the first gate.yml touches none."""
    if not base or config.commit:
        return verdict
    source = os.path.relpath(config.source, config.directory)
    if not ask_git(config.directory, "cat-file", "-e", f"{base}:./{source}").is_good:
        return verdict
    command = (*DIFF, "--name-only", "-z", base, "--")
    rules = (Path(config.source), *config.registry, config.baselines)
    # git refuses what lies outside of the repository: that is no part of a change.
    listed = {rule: ask_git(config.directory, *command, str(rule.absolute())).output for rule in rules}
    counts = {rule: files.count(b"\0") for rule, files in listed.items()}
    named = tuple(f"{rule} ({format_noun(count, 'file')})" for rule, count in counts.items() if count)
    notes = [Fact(code=Code.TOUCHES_RULES, names={"rules": named})] if named else []
    return replace(verdict, notes=(*notes, *verdict.notes))


def name_judge(options: Namespace, config: Config) -> str:
    """As acceptances name it; empty outside a repository."""
    source = Path(config.source)
    top = find_checkout(source.parent)
    return options.gate or (name_gate(source, top) if top else "")
