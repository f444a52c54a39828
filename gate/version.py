"""The version of this tool, alone in a module, so that whoever needs it imports nothing else."""

__version__ = "0.1.0"
