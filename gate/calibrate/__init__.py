"""What recorded trials of one unchanged program say about a machine, and about the gate on it; pure."""
