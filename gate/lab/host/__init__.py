"""The host as it is: counters, GPUs, locks, scratch, where a run comes from."""
