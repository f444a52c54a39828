"""The composite action: inputs -> validated record -> arguments of ``compile-gate`` -> outputs.

``start.sh`` and ``start.py`` find the interpreter and make this package importable; ``python -m
gate.action.modes`` does what the input ``mode`` asks for. What measures has no token, and none of the files
through which a step talks to its runner.
"""
