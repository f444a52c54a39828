"""The measuring side: what runs inside a worker process; besides the models the only code that imports torch.

:mod:`gate.measure.worker` is the process, :mod:`~gate.measure.cold` and :mod:`~gate.measure.warm` are
its two protocols. Private interfaces of torch are met in :mod:`~gate.measure.graph` and
:mod:`~gate.measure.toolchain` only, devices differ in :mod:`~gate.measure.device` only.
"""
