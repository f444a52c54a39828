"""Known faults, planted through the registry's factory: how the gate shows that it catches them.

Torch-free but for :mod:`gate.faults.plant` and :mod:`gate.faults.ops`, which only workers import.
"""
