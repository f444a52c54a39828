"""The composite action: inputs -> validated record -> arguments of ``compile-gate`` -> outputs.

``start.sh`` and ``start.py`` find the interpreter and make this package importable; from there on
``python -m gate.action.modes`` does what the input ``mode`` asks for. What measures runs without any token
and without the files through which a step talks to its runner.
"""
