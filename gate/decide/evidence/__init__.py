"""What is compared with what: values of trials, stored baselines, pairs, and how fit the host was."""
