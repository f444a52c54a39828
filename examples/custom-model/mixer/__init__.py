"""The user's own package: nothing in it but bench.py knows of compile-gate."""
