"""Every record and enumeration of the domain: begin to read in :mod:`gate.records.cases`.

All are frozen and torch-free. Times are in seconds, memory in bytes, changes are fractions (0.05 is 5 %),
and a *change* is positive when the candidate is worse.
"""
