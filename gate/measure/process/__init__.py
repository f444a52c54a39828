"""A worker as a process: its entry, the server that forks it, its result on disk, its turns."""
