"""How cases of each kind are built, compiled and called; rows in :mod:`gate.kinds`."""
