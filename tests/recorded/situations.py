"""All situations: those judged by baselines, and those judged by pairs."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from gate.decide.evidence.baseline import make_baselines
from gate.metrics import LATENCIES
from gate.records.cases import Metric
from gate.records.facts import Disturbance
from gate.records.run import FailureKind, Pairing, Run
from tests.recorded.runs import (
    CHAIN,
    HEAD,
    POLICY,
    SLOWER,
    STENCIL,
    SUM,
    Situation,
    accept,
    condition,
    edit,
    fail,
    keep,
    load,
    scale,
)
from tests.recorded.stored_situations import STORED, Recorded


def list_paired(pairs: Run) -> Iterator[tuple[str, Situation]]:
    """Situations judged by pairs alone."""
    source = pairs.base
    assert source is not None

    def make(name: str, run: Run, **more: Any) -> tuple[str, Situation]:
        return name, Situation(run=run, judged_by="pairs", **more)

    yield make("pairs_as_measured", pairs)
    pairs = keep(pairs, STENCIL, HEAD, SUM, trials=99)
    few = replace(pairs, trials=tuple(t for t in pairs.trials if t.index <= 2))
    yield make("pairs", pairs)
    yield make("pairs_other_config", pairs, config="ci/gate.yml")
    yield make("pairs_few", few)
    yield make("pairs_one", replace(pairs, trials=tuple(t for t in pairs.trials if t.index <= 1)))
    yield make("pairs_slower", edit(pairs, scale(SLOWER), HEAD))
    yield make("pairs_both_slower", edit(pairs, scale(dict.fromkeys(LATENCIES, 1.6)), HEAD))
    yield make("pairs_faster", edit(pairs, scale({Metric.COMPILED_LATENCY: 0.6}), HEAD, STENCIL, CHAIN))
    yield make("pairs_a_little", edit(few, scale({Metric.COMPILED_LATENCY: 1.03}), HEAD))
    yield make(
        "pairs_in_turn",
        replace(
            pairs,
            trials=tuple(
                replace(t, pairing=Pairing.TURNS) if t.pairing is Pairing.LIVE else t for t in pairs.trials
            ),
        ),
    )
    yield make("pairs_base_failed", fail(pairs, HEAD, FailureKind.ERROR, arm="base"))
    yield make("pairs_head_failed", fail(pairs, HEAD, FailureKind.CRASH))
    yield make("pairs_stopped", replace(pairs, finished=False))
    gone = replace(source.cases[0], id="gone/inference-float32-smoke-default", model="gone")
    yield make("pairs_vanished", replace(pairs, base=replace(source, cases=(*source.cases, gone))))
    yield make(
        "pairs_new",
        replace(
            pairs, base=replace(source, cases=()), trials=tuple(t for t in pairs.trials if t.arm == "head")
        ),
    )
    yield make(
        "pairs_redefined",
        replace(
            pairs, base=replace(source, cases=tuple(replace(c, definition="other") for c in source.cases))
        ),
    )
    yield make("pairs_accepted", pairs, policy=accept(Metric.COMPILED_LATENCY, 9.0))
    yield make(
        "pairs_disturbed",
        edit(pairs, condition(swapped_bytes=96 * 2**20, disturbances=(Disturbance.SWAPPED,)), HEAD),
    )
    older = replace(source, label="torch 2.12.0", environment=replace(source.environment, torch="2.12.0"))
    yield make("upgrade", replace(pairs, base=older))
    yield make(
        "upgrade_better",
        edit(replace(pairs, base=older), scale({Metric.COMPILED_LATENCY: 0.4, Metric.PEAK_MEMORY: 0.5})),
    )
    yield make("same_stack", replace(pairs, base=replace(source, label="torch 2.13.0")))


def list_confirmed(base: Run, pairs: Run) -> Iterator[tuple[str, Situation]]:
    """Situations of a screening, with pairs of its suspects or without."""
    stored = make_baselines(base, replace(base.provenance, author="Ada"))
    source = pairs.base
    assert source is not None
    pairs = keep(pairs, STENCIL, HEAD, SUM, trials=99)
    anchored = replace(POLICY, has_anchor=True)
    screened = keep(base, STENCIL, HEAD, SUM, trials=2).trials

    def confirm(
        name: str, change: Mapping[Metric, float], *case_ids: str, **more: Any
    ) -> tuple[str, Situation]:
        alone = edit(replace(pairs, trials=screened), scale(change), *case_ids)
        trials = (*alone.trials, *(t for t in pairs.trials if t.pairing is not Pairing.ALONE))
        run = replace(pairs, trials=trials, trials_planned=2, **more.pop("run", {}))
        return name, Situation(run=run, baselines=more.pop("baselines", stored), judged_by="confirm", **more)

    yield confirm("confirmed", SLOWER, STENCIL)
    yield confirm("acquitted", SLOWER, HEAD)
    yield confirm("acquitted_all", {**SLOWER, Metric.PEAK_MEMORY: 1.5}, policy=anchored)
    yield confirm("unpaired", SLOWER, HEAD, run={"base": replace(source, cases=())})
    yield confirm(
        "unpaired_redefined",
        SLOWER,
        HEAD,
        run={"base": replace(source, cases=tuple(replace(c, definition="other") for c in source.cases))},
    )
    yield confirm(
        "unpaired_accepted",
        {Metric.COMPILED_LATENCY: 1.15},
        HEAD,
        run={"base": replace(source, cases=())},
        policy=accept(Metric.COMPILED_LATENCY, 0.9),
    )
    failing = fail(pairs, HEAD, FailureKind.ERROR, arm="base")
    yield confirm("unpaired_failed", SLOWER, HEAD, run={"failures": failing.failures})
    yield confirm("confirm_no_baselines", {}, baselines=())
    yield (
        "no_pair",
        Situation(
            run=replace(
                pairs,
                trials=edit(replace(pairs, trials=screened), scale(SLOWER), HEAD).trials,
                trials_planned=2,
            ),
            baselines=stored,
            judged_by="confirm",
        ),
    )


def list_situations() -> dict[str, Situation]:
    base, head, pairs, crash = map(load, ("base", "head", "pairs", "crash"))
    recorded = Recorded(base=base, head=head, crash=crash)
    stored = (named for list_some in STORED for named in list_some(recorded))
    return dict((*stored, *list_paired(pairs), *list_confirmed(base, pairs)))
