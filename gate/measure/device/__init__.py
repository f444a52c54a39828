"""A CPU or a CUDA device: its memory, its precision, and what watches it."""
