"""The host as it is: its GPUs, others on it, and what a run owns of it."""
