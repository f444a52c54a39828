"""Outside the worker: lock, prime, spawn, time out, isolate, save, resume. Knows no torch."""
