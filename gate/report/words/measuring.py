"""What is reported of measuring: notes as a run goes, what its trials could not do, what disturbed them."""

from __future__ import annotations

from collections.abc import Mapping

from gate.records import Code, Disturbance, Fact
from gate.report.words.failures import describe_quoted
from gate.report.words.templates import fill
from gate.units import join_some

_UNFORKED = "workers are not forked, each imports everything itself"
_SERVER_FAILED = f"{_UNFORKED}: the process that was to fork them failed"
_PHRASES: Mapping[Code, str] = {
    Code.TEXT: "{text}",
    Code.UNCOMMITTED_BEFORE: "git cannot show edits: earlier trials may be of other code",
    Code.REPEATED: "{case_list} trial {trial} is repeated: {disturbances}",
    Code.NO_BASE: "compared with the stored baselines alone: {reason}. {fix}",
    Code.NOTHING_DIFFERS: "compared with the stored baselines alone: nothing differs from {base}",
    Code.ARMS: "base: {base}; head: {head}",
    Code.UNCOMMITTED: "uncommitted changes are part of what was measured",
    Code.NO_DIRECTORY: "{arm} has no directory {place}",
    Code.NO_SUBMODULES: "submodules of {arm} are empty: this clone has no objects of {paths:some}",
    Code.LENT: "{arm} has no gate.yml and is measured by yours: {paths}",
    Code.BASE_UNCONFIGURED: "the base has no gate.yml, and is measured by yours",
    Code.BASE_MISCONFIGURED: (
        "the base's configuration cannot be used ({problem}): only the reference models are compared"
    ),
    Code.VARIABLES_DROPPED: "workers do not inherit {variables}, which would change the measurement",
    Code.ENDS_UNANNOUNCED: f"{_UNFORKED}: nothing announces the end of a process here (Linux 5.3 does)",
    Code.SERVER_SILENT: f"{_SERVER_FAILED}, no answer within {{limit_s:.6g}} s",
    Code.SERVER_GONE: f"{_SERVER_FAILED}, it ended",
    Code.IMPORT_FAILED: f"{_UNFORKED}: importing the model fails: {{exception}}",
    Code.IMPORT_SETS_THREADS: f"{_UNFORKED}: importing the model sets torch's number of threads",
    Code.IMPORT_STARTS_PROCESSES: f"{_UNFORKED}: importing the model starts a process",
    Code.IMPORT_STARTS_THREADS: (
        f"{_UNFORKED}: importing the model starts [the thread '{{thread}}'|threads of a library]"
    ),
    Code.ENDED_BADLY: "the {role} process ended with {status:status} after its result was complete",
    Code.FAILED_BEFORE: "failed ({kind} at {stage}) before the run was continued, and was tried again",
    Code.PROCESS_FAILED: "the {role} process failed: this trial is what was measured before",
    Code.REPEAT_KILLED: "the repeat of a disturbed trial was killed, so that trial is kept: {failure}",
    Code.PROCESSES_DISAGREE: "the cold and the warm process disagree on the workload's {subject}",
    Code.LEFT_TO_EAGER: "fell back to eager[ at {location}][: {reason}]",
    Code.UNKNOWN_HERE: "this torch does not report {metric_list}",
    Code.LANE_LEFT_OUT: "the lane {lane} is left out: {reason}",
    Code.LANE_GONE: "the lane {lane} is lost ({reason}): {case_list} begins anew elsewhere",
    Code.NO_TRACE: "this torch leaves no structured trace",
    Code.TRACE_CUT: "its trace is incomplete: {failure}",
    Code.INPUT_AS_IT_IS: "{input} is {kind}: it is given as it is, and not cast or moved",
    Code.PARAMETERS_UNSEEN: "{why}: it is not cast, moved or copied for float64",
    Code.EAGER_COMPILED: (
        "eager calls are partly compiled, since the model uses torch.compile itself: compile time,"
        " drift and speedup do not show it; remove torch.compile from the model"
    ),
    Code.GRAPH_DIFFERS: (
        "the second process compiles other graphs than the first, and finds none of them in the caches:"
        " something in them differs between processes, as the order of a set of strings (another hash seed),"
        " an object id or a time"
    ),
    Code.BLOCKS_RECOMPILED: "recompiled during {blocks} of the timed blocks; they are left out",
    Code.UNMEASURED: "{metric_list} not measured[: {why}]",
    Code.MEMORY_KEPT: (
        "each compiled call keeps {bytes:bytes} more, still after {calls:call}[, made at {location}];"
        " [each eager call keeps {eager:bytes}|eager calls keep nothing]"
    ),
    Code.NO_CUDA_GRAPH: "the case asks for CUDA graphs, and no call launches one",
    Code.UNWATCHED: "the GPU cannot be monitored for {unseen}: {why}",
    Code.REFERENCE_TOO_LARGE: (
        "drift is not measured, there is no room on the device, and the processor would need"
        " {needed:bytes} at least, and {free:bytes} are free"
    ),
    Code.NO_FLOAT64: (
        "drift is not measured, the case does not run in float64: {why}; compiled was compared with eager"
        " alone, within what rounding explains"
    ),
    Code.FLOAT32_REFERENCE: (
        "drift is measured against float32, the case does not run in float64: {why}; drift in float32 is not"
        " measured"
    ),
    Code.RANDOM_UNJUDGED: (
        "drift cannot be judged: the forward draws random numbers, and compiled code draws others than eager"
    ),
    Code.STATE_UNJUDGED: (
        "drift cannot be judged: two eager calls with the same inputs, weights and seed differ: the forward"
        " keeps state, or draws random numbers, where nothing can put them back"
    ),
    Code.NO_TENSORS: (
        "drift is not measured, NaN is not looked for: no tensor was found in what the model returns"
        " or writes (looked into: tuples, lists, mappings, attributes of objects)"
    ),
    Code.REFERENCE_NOT_FINITE: (
        "drift leaves out {unknown} of {elements:element} of {output}, which are finite in the case and not"
        " in float64"
    ),
    Code.REFERENCE_RESHAPED: (
        "{output} is {exact} in float64 and {eager} in eager: what is right is not known, compiled was"
        " compared with eager alone"
    ),
    Code.OUTPUT_UNSEEN: "{output}, of type {dtype}, is not compared: this type has no comparison",
    Code.WRITES_UNSEEN: (
        "what compiled code writes to {outputs} is not compared: code of this kind has tensors of its own"
    ),
    Code.OUTPUT_FAR: (
        "{output} of compiled is off from eager's by {error:.2g}, relative to its size: rounding explains"
        " {limit:.2g}"
    ),
    Code.OUTPUT_LOST: "{output} is returned by one of eager and compiled only",
    Code.OUTPUT_RESHAPED: (
        "{output} is of another shape or type compiled than in eager[: {compiled}, and {eager} in eager]"
    ),
    Code.OUTPUT_DIFFERS: (
        "{output} differs between eager and compiled[: {dtype}][, off by {most:,.0f} at most]"
        "[, in {elements} of {of:element}]"
    ),
}
_DISTURBANCES: Mapping[Disturbance, str] = {
    Disturbance.CROWDED: "other programs kept {crowded:.1f} of {cores} cores busy[: {crowd}]",
    Disturbance.STOLEN: "the hypervisor took {stolen:share} of the time",
    Disturbance.HELD_BACK: "the container's quota stopped it for {held_back:share} of the time",
    Disturbance.HEATED: "processor cores lowered their clocks for heat",
    Disturbance.SWAPPED: "{swapped:bytes} were swapped",
    Disturbance.SHORT_OF_MEMORY: "only {short_of_memory:bytes} of memory were free",
    Disturbance.THROTTLED: "the device lowered its clocks[ ({reasons})]",
    Disturbance.SHARED: "other processes used the device",
    Disturbance.HELD_MEMORY: "others held {held_memory:share} of the device's memory",
}


def describe_measuring(fact: Fact) -> str:
    """Describe what a run reports as it goes, or what a trial could not do."""
    values = {
        "disturbances": describe_disturbances(fact),
        "failure": describe_quoted(fact),
        "output": fact.name("output", "an output"),
    }
    return fill(_PHRASES[fact.code], fact, **values)


def describe_disturbances(fact: Fact) -> str:
    """The first of what disturbed, and how many more."""
    phrases = (phrase for code, phrase in _DISTURBANCES.items() if code in fact.numbers)
    return join_some([fill(phrase, fact) for phrase in phrases])
