"""What is under test: checkouts of commits, and other interpreters."""
