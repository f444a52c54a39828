"""What plants a fault in a workload; imports torch, so workers only."""
