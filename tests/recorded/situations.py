"""All situations: those that stored baselines judge, and those that pairs side by side do."""

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


def list_beside(pairs: Run) -> Iterator[tuple[str, Situation]]:
    """Situations that pairs decide alone."""
    source = pairs.base
    assert source is not None

    def hold(name: str, run: Run, **more: Any) -> tuple[str, Situation]:
        return name, Situation(run=run, beside="pairs", **more)

    yield hold("pairs_as_measured", pairs)
    pairs = keep(pairs, STENCIL, HEAD, SUM, trials=99)
    few = replace(pairs, trials=tuple(t for t in pairs.trials if t.index <= 2))
    yield hold("pairs", pairs)
    yield hold("pairs_other_config", pairs, config="ci/gate.yml")
    yield hold("pairs_few", few)
    yield hold("pairs_one", replace(pairs, trials=tuple(t for t in pairs.trials if t.index <= 1)))
    yield hold("pairs_slower", edit(pairs, scale(SLOWER), HEAD))
    yield hold("pairs_both_slower", edit(pairs, scale(dict.fromkeys(LATENCIES, 1.6)), HEAD))
    yield hold("pairs_faster", edit(pairs, scale({Metric.COMPILED_LATENCY: 0.6}), HEAD, STENCIL, CHAIN))
    yield hold("pairs_a_little", edit(few, scale({Metric.COMPILED_LATENCY: 1.03}), HEAD))
    yield hold(
        "pairs_in_turn",
        replace(
            pairs,
            trials=tuple(
                replace(t, pairing=Pairing.TURNS) if t.pairing is Pairing.LIVE else t for t in pairs.trials
            ),
        ),
    )
    yield hold("pairs_base_failed", fail(pairs, HEAD, FailureKind.ERROR, arm="base"))
    yield hold("pairs_head_failed", fail(pairs, HEAD, FailureKind.CRASH))
    yield hold("pairs_stopped", replace(pairs, finished=False))
    gone = replace(source.cases[0], id="gone/inference-float32-smoke-default", model="gone")
    yield hold("pairs_vanished", replace(pairs, base=replace(source, cases=(*source.cases, gone))))
    yield hold(
        "pairs_new",
        replace(
            pairs, base=replace(source, cases=()), trials=tuple(t for t in pairs.trials if t.arm == "head")
        ),
    )
    yield hold(
        "pairs_redefined",
        replace(
            pairs, base=replace(source, cases=tuple(replace(c, definition="other") for c in source.cases))
        ),
    )
    yield hold("pairs_accepted", pairs, policy=accept(Metric.COMPILED_LATENCY, 9.0))
    yield hold(
        "pairs_disturbed",
        edit(pairs, condition(swapped_bytes=96 * 2**20, disturbances=(Disturbance.SWAPPED,)), HEAD),
    )
    older = replace(source, label="torch 2.12.0", environment=replace(source.environment, torch="2.12.0"))
    yield hold("upgrade", replace(pairs, base=older))
    yield hold(
        "upgrade_better",
        edit(replace(pairs, base=older), scale({Metric.COMPILED_LATENCY: 0.4, Metric.PEAK_MEMORY: 0.5})),
    )
    yield hold("same_stack", replace(pairs, base=replace(source, label="torch 2.13.0")))


def list_confirmed(base: Run, pairs: Run) -> Iterator[tuple[str, Situation]]:
    """Situations of a screening whose suspects are confirmed by pairs, or not."""
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
        return name, Situation(run=run, baselines=more.pop("baselines", stored), beside="confirm", **more)

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
            beside="confirm",
        ),
    )


def list_situations() -> dict[str, Situation]:
    """All situations by name."""
    base, head, pairs, crash = map(load, ("base", "head", "pairs", "crash"))
    recorded = Recorded(base=base, head=head, crash=crash)
    stored = (named for list_some in STORED for named in list_some(recorded))
    return dict((*stored, *list_beside(pairs), *list_confirmed(base, pairs)))
