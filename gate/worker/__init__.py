"""A worker as a process: its entry, the server that forks it, and whose code it imported."""
