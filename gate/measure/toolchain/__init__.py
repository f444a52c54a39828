"""The compiler's one-off work: paid once, kept between runs, never charged to a case."""
