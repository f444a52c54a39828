"""The procedure of a check, over anything that measures: processes, recorded trials, or drawn ones."""
