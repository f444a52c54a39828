"""One worker process: started or forked, given its request, timed out, and ended with all it started."""
