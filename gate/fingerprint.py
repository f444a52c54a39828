"""Which environments may be compared: by the clock, by what the compiler does, by the stack alone.

- *Host* identity, which the environment id names, is everything that can move a time.
- *Codegen* identity is the stack plus what Inductor vectorizes for and the thread count; of a GPU its model,
  multiprocessors and memory, by which kernels are chosen and tuned.
- *Stack* identity is the software that decides what a compile produces, and a GPU's compute capability.

The device's UUID is in none of them: another card of the same model is comparable, weakly. A local version
part (``2.13.0+cpu``) names a build: it separates hosts and not stacks.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import fields, replace

from gate.devices import TARGET_KIND, is_gpu
from gate.records.run import Environment, Run

_HASH_CHARS = 8  # 32 bits: a repository stores tens of environments, not thousands
_SLUG_CHARS = 40  # file names stay readable, and far below the 255 bytes of a path component
# Words of a device's marketing name that distinguish nothing.
_NOISE = re.compile(
    r"\((r|tm|c)\)|@.*|\b(nvidia|cpu|gpu|processor|with|radeon|graphics|\d+-core(s)?)\b", re.IGNORECASE
)

# The parts of a host that no upgrade of its software changes.
_HARDWARE = frozenset({"device_model", "clocks", "cpu", "cores", "threads", "isa", "device_traits"})

# What an upgrade of its software may change without another stack.
_UPGRADED = frozenset({"driver", "compiler", "torch_build", "library_builds"})
PACKAGE = "package"
_LABELS = {
    "isa": "instruction set",
    "cuda": "CUDA",
    "libraries": "library",
    "settings": "setting",
    "packages": PACKAGE,
    "device_traits": "device's",
}
_CAPABILITY = "capability"
# What Inductor reads of a GPU: it stands in every kernel's source and decides what is tuned.
_CODEGEN_TRAITS = (_CAPABILITY, "multiprocessors", "memory")


def compute_environment_id(env: Environment) -> str:
    """``cpu-amd-epyc-torch2.13.0-1a2b3c4d``: a directory's name."""
    digest = _hash_parts(_list_host_parts(env))
    release = _to_slug(_drop_local(env.torch)) or "none"
    return "-".join(part for part in (_describe_device(env), f"torch{release}", digest) if part)


def compute_machine_id(env: Environment) -> str:
    """``amd-epyc-1a2b3c4d``: an upgrade of the stack keeps it."""
    parts = {name: value for name, value in _list_host_parts(env).items() if name in _HARDWARE}
    model = _to_slug(_NOISE.sub(" ", str(parts.get("cpu", ""))))
    return "-".join(part for part in (model, _hash_parts(parts)) if part)


def _hash_parts(parts: Mapping[str, object]) -> str:
    canonical = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:_HASH_CHARS]


def has_same_host(a: Environment, b: Environment) -> bool:
    """Whether times may be compared."""
    return a == b or _list_host_parts(a) == _list_host_parts(b)


def compares_stacks(run: Run) -> bool:
    """Two interpreters are two stacks, whatever is recorded of them."""
    if run.base is None or len(set(run.base.pythons)) > 1:
        return run.base is not None
    return not has_same_host(run.base.environment, run.environment)


def has_same_stack(a: Environment, b: Environment) -> bool:
    """Whether what a compile produces may be compared."""
    return (_list_stack_parts(a), _name_architecture(a)) == (_list_stack_parts(b), _name_architecture(b))


def has_same_codegen(a: Environment, b: Environment) -> bool:
    """Whether what code generation did may be compared too."""
    return has_same_stack(a, b) and _list_codegen_parts(a) == _list_codegen_parts(b)


def describe_upgrade(a: Environment, b: Environment) -> tuple[str, ...]:
    """Empty where hardware differs too, or nothing does."""
    if a == b:
        return ()
    old, new = _list_host_parts(a), _list_host_parts(b)
    is_upgrade = all(old[name] == new[name] for name in old if name not in _UPGRADED)
    return describe_acting(a, b) if is_upgrade and old != new else ()


def describe_acting(a: Environment, b: Environment) -> tuple[str, ...]:
    """Describe what can have moved anything that was measured."""
    return describe_difference(*map(_drop_unused, (a, b)))


def describe_difference(a: Environment, b: Environment) -> tuple[str, ...]:
    """``torch 2.13.0 -> 2.14.1``."""
    return tuple(
        f"{label} {'none' if old == '' else old} -> {'none' if new == '' else new}"
        for label, old, new in list_parts(a, b)
        if old != new
    )


def list_parts(a: Environment, b: Environment) -> tuple[tuple[str, str, str], ...]:
    """List label, old and new of all that is recorded."""
    parts: list[tuple[str, str, str]] = []
    for field in fields(Environment):
        old, new = getattr(a, field.name), getattr(b, field.name)
        label = _LABELS.get(field.name, field.name.replace("_", " "))
        if field.name == "packages" and not (old and new):
            continue  # nobody wrote down those of one side
        if isinstance(old, Mapping):
            names = sorted({*old, *new})
            parts.extend((f"{label} {name}", old.get(name, ""), new.get(name, "")) for name in names)
        else:
            parts.append((label, str(old), str(new)))
    return tuple(parts)


def _drop_unused(env: Environment) -> Environment:
    if is_gpu(env.device_kind):
        return replace(env, device_uuid="")
    return replace(env, device_uuid="", driver="", triton="", cuda="")


def _list_stack_parts(env: Environment) -> dict[str, object]:
    on_gpu = is_gpu(env.device_kind)
    return {
        "device_kind": env.device_kind,
        "torch": _drop_local(env.torch),
        "triton": _drop_local(env.triton) if on_gpu else "",
        "cuda": env.cuda if on_gpu else "",
        "python": ".".join(env.python.split(".")[:2]),
        "libraries": {name: _drop_local(version) for name, version in env.libraries.items()},
        "settings": dict(env.settings),
    }


def _name_architecture(env: Environment) -> str:
    return (env.device_traits.get(_CAPABILITY, "") or env.device_model) if is_gpu(env.device_kind) else ""


def _list_codegen_parts(env: Environment) -> tuple[object, ...]:
    if not is_gpu(env.device_kind):
        return env.isa, env.threads
    if env.device_kind == TARGET_KIND:
        return tuple(sorted(env.device_traits.items()))
    traits = {name: env.device_traits.get(name, "") for name in _CODEGEN_TRAITS}
    return env.isa, env.threads, env.device_model, traits


def _list_host_parts(env: Environment) -> dict[str, object]:
    if env.device_kind == TARGET_KIND:  # what is compiled for a target is the same wherever it is compiled
        return {**_list_stack_parts(env), "device_traits": dict(env.device_traits)}
    return {
        **_list_stack_parts(env),
        "device_model": env.device_model,
        "driver": env.driver if is_gpu(env.device_kind) else "",
        "clocks": env.clocks,
        "cpu": env.cpu,
        "cores": env.cores,
        "threads": env.threads,
        "isa": env.isa,
        "compiler": env.compiler,
        "torch_build": env.torch,
        "library_builds": dict(env.libraries),
        "allocator": env.allocator,
        "workers": env.workers,
        "device_traits": dict(env.device_traits),
    }


def _drop_local(version: str) -> str:
    return version.partition("+")[0]


def _describe_device(env: Environment) -> str:
    kind = _to_slug(env.device_kind) or "unknown"
    model = _to_slug(_NOISE.sub(" ", env.device_model or env.cpu))
    return f"{kind}-{model}" if model else kind


def _to_slug(text: str) -> str:
    slug = re.sub(r"[^a-z0-9.]+", "-", text.lower())[:_SLUG_CHARS]
    return slug.strip("-.")
