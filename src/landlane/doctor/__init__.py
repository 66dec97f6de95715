"""Check that everything is in place, and repair what can be repaired."""
