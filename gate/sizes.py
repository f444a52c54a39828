"""Bytes of a KiB, a MiB and a GiB."""

KIB = 1024
MIB = KIB * KIB
GIB = KIB * MIB
