"""How cases of each kind are built, compiled and called; one file a kind, rows in :mod:`gate.kinds`."""
