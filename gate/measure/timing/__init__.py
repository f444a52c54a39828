"""The clock: blocks, rounds, first calls, and canaries that tell the machine's mood."""
