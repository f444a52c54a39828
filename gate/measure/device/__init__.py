"""A CPU or a CUDA device: its memory, its precision, what watches it, and the machine around it."""
