"""`landlane doctor`: check an installation, try its hooks, repair what can be repaired."""
