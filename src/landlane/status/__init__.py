"""The state of everything at a glance, and the next steps."""
