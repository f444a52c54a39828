"""The measuring side: what runs inside a worker process; besides the models the only code that imports torch.

:mod:`gate.worker.worker` is the process, :mod:`~gate.measure.trial` what two of them measure. What
is private to torch is met in ``graph``, ``identity``, ``environment``, ``device`` and ``seed_drift`` alone:
there a new torch is looked at. Kinds of devices differ in ``device``.
"""
