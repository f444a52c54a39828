"""Numerical drift: the float64 reference, the float32 twin, and how far compiled code is from them."""
