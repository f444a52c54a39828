"""What the compiler says it did: graphs, breaks, kernels, identity, Python calls."""
