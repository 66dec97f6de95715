"""Which git commands would affect the work of other sessions."""
