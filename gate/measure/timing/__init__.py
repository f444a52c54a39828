"""The clock: blocks, rounds, first calls, and canaries that show how fast the machine is."""
