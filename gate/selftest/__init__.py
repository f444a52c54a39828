"""The gate's test of itself: how much of a fault to plant, and what is made of the result."""
