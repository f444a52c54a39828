"""What recorded trials of one unchanged program show about a machine and the gate on it; pure."""
