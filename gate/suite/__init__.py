"""The pytest-benchmark suite: ``pytest --pyargs gate.suite -p gate.suite.plugin``."""
