"""The procedure of a check, over anything that measures: processes, recorded trials, or drawn ones.

::

    checked = check_against_base(measurer, run, CheckTerms(baselines=baselines, policy=policy))

``run`` has the plan's first trials. Pure but for what the measurer does.
"""
