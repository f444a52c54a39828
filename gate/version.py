"""The version of this tool, alone in a module, so that its users import nothing else."""

__version__ = "0.1.0"
