"""Which git commands would touch the work of other sessions."""
