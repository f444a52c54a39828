"""Every record and enumeration of the domain: begin to read in :mod:`gate.records.cases`.

All records are frozen, keyword-only and torch-free. Sequences are tuples. Times are in seconds,
memory in bytes, ratios and changes are bare fractions (0.05 is 5 %), and a *change* is positive
when the candidate is worse. Records are parsed at the border (:mod:`gate.files.codec`) and trusted after.
"""
